//! Requests as they come over HTTP.

use super::Lab;
use crate::{Credentials, Method, Request, Setup};

#[test]
fn parameters_come_from_the_query_a_form_and_json() {
    let json = [("content-type", "application/json")];
    let form = [("content-type", "application/x-www-form-urlencoded; charset=UTF-8")];
    let table = [
        ("/api2/json/pools?poolid=a%20b", &[][..], ""),
        ("/api2/json/pools", &form[..], "poolid=a+b"),
        ("/api2/json/pools", &form[..], "poolid=a%20b"),
        ("/api2/json/pools", &json[..], r#"{"poolid": "a b", "none": null}"#),
    ];
    for (target, headers, body) in table {
        let request = Request::from_http("POST", target, headers, body.as_bytes()).unwrap();
        assert_eq!(request, Request::new(Method::Post, "/pools").with("poolid", "a b"), "{target} {body}");
    }
    let request = Request::from_http("PUT", "/api2/json/x", &json, br#"{"a": true, "b": 5}"#).unwrap();
    assert_eq!(request, Request::new(Method::Put, "/x").with("a", 1).with("b", "5"));
}

/// A VM whose guest agent runs.
fn with_a_guest() -> Lab {
    let mut lab = Lab::new();
    lab.machine(100);
    assert_eq!(lab.run("POST /nodes/pve1/qemu/100/status/start"), "OK");
    lab.pass(600_000);
    lab
}

fn handle(lab: &mut Lab, request: Request) {
    let answer = lab.state.handle(&request.token(Setup::ROOT_TOKEN), lab.now).answer().unwrap();
    assert_eq!(answer.status, 200, "{}", answer.reason);
}

#[test]
fn a_list_is_a_parameter_that_is_given_several_times_or_a_json_array() {
    let json = [("content-type", "application/json")];
    let list = br#"{"command": ["sh", "-c", "true"]}"#;
    let target = "/api2/json/nodes/pve1/qemu/100/agent/exec";
    let from_json = Request::from_http("POST", target, &json, list).unwrap();
    let from_form = Request::from_http("POST", target, &[], b"command=sh&command=-c&command=true").unwrap();
    assert_eq!(from_json, from_form);
    let mut lab = with_a_guest();
    handle(&mut lab, from_form);
    assert_eq!(lab.state.vm(100).unwrap().guest.commands, ["sh -c true\n"]);
    let twice = Request::from_http("GET", "/api2/json/cluster/resources?type=vm&type=node", &[], b"").unwrap();
    let refused = lab.state.handle(&twice.token(Setup::ROOT_TOKEN), lab.now).answer().unwrap();
    assert_eq!(refused.body.unwrap()["errors"]["type"], "type check ('string') failed - got ARRAY");
}

#[test]
fn what_is_written_into_a_guest_is_encoded_by_the_server_or_by_the_sender() {
    let mut lab = with_a_guest();
    for (encode, file) in [("", "aGk="), ("&encode=1", "aGk="), ("&encode=0", "hi")] {
        let body = format!("file=/a&content=aGk%3D{encode}");
        let write = Request::from_http("POST", "/api2/json/nodes/pve1/qemu/100/agent/file-write", &[], body.as_bytes());
        handle(&mut lab, write.unwrap());
        assert_eq!(lab.state.vm(100).unwrap().guest.files["/a"], file, "{encode}");
    }
}

#[test]
fn credentials_come_from_headers() {
    let read =
        |headers: &[(&str, &str)]| Request::from_http("GET", "/api2/json/version", headers, b"").unwrap().credentials;
    let token = "root@pam!full=secret";
    assert_eq!(read(&[]), Credentials::None);
    assert_eq!(read(&[("authorization", &format!("PVEAPIToken={token}"))]), Credentials::Token(token.to_owned()));
    let ticket = Credentials::Ticket { ticket: "PVE:root@pam:AA::bb".to_owned(), csrf: Some("c".to_owned()) };
    for cookie in ["PVEAuthCookie=PVE:root@pam:AA::bb", "a=b; PVEAuthCookie=PVE%3Aroot%40pam%3AAA%3A%3Abb"] {
        assert_eq!(read(&[("cookie", cookie), ("csrfpreventiontoken", "c")]), ticket);
    }
}

#[test]
fn an_upload_is_read_whatever_its_bytes_are() {
    let mut content = b"\r\n--bound but not the end\r\n\r\n".to_vec();
    content.extend(0..=255_u8);
    let mut body = b"--bound9\r\nContent-Disposition: form-data; name=\"content\"\r\n\r\niso\r\n--bound9\r\nContent-Disposition: form-data; name=\"filename\"; filename=\"a/seed.iso\"\r\nContent-Type: application/octet-stream\r\n\r\n".to_vec();
    body.extend(&content);
    body.extend(b"\r\n--bound9--\r\n");
    let headers = [("content-type", "multipart/form-data; boundary=bound9")];
    let request = Request::from_http("POST", "/api2/json/nodes/a/storage/b/upload", &headers, &body).unwrap();
    assert_eq!(request.parameters["content"], "iso");
    assert_eq!(request.parameters["filename"], "seed.iso");
    let file = request.file.unwrap();
    assert_eq!((file.name.as_str(), file.content), ("seed.iso", content));
    body.truncate(body.len() - 6);
    let cut = Request::from_http("POST", "/api2/json/x", &headers, &body).unwrap_err();
    assert_eq!((cut.status, cut.reason.as_str()), (400, "upload ended before its last boundary"));
}

#[test]
fn what_is_no_call_is_refused() {
    let read = |method: &str, target: &str| Request::from_http(method, target, &[], b"").unwrap_err();
    assert_eq!(read("GET", "/index.html").status, 404);
    assert_eq!(read("PATCH", "/api2/json/version").status, 501);
    let mut lab = super::Lab::new();
    assert_eq!(lab.refused("GET /nodes/pve1/lxc"), "501 Method 'GET /nodes/pve1/lxc' not implemented");
    assert_eq!(lab.refused("POST /version"), "501 Method 'POST /version' not implemented");
}
