//! Objects of the predecessor become objects of this group, and nothing is lost without a note.

use super::{convert, name_of};
use api::fleet::{HypervisorCluster, HypervisorMachineTemplate, MachineClaim, RunnerPool};
use expect_test::expect;
use serde_json::{Value, json};

const SAMPLE: &str = include_str!("../../tests-data/predecessor.yaml");

fn sample() -> Vec<Value> {
    serde_saphyr::from_multiple(SAMPLE).unwrap()
}

#[test]
fn every_object_of_the_predecessor_is_converted_and_every_field_that_is_not_has_a_note() {
    let mut text = String::new();
    for object in sample() {
        for converted in convert(&object).unwrap() {
            text.push_str(&format!("{}\n", name_of(&converted.object)));
            converted.notes.iter().for_each(|note| text.push_str(&format!("# {note}\n")));
            text.push_str(&format!("{:#}\n", converted.object));
        }
    }
    expect![[r##"
        HypervisorCluster ci/pve
        # spec.credentials.tokenId.optional is not carried over: credentials are never optional
        # spec.tls.insecureSkipVerify is not carried over: caCertificate, which the predecessor did not read, verifies the certificate now
        # spec.nodes: the predecessor did not use it; now machines are created on these nodes only
        # spec.tags: each becomes a tag key-value, in the characters that Proxmox VE allows
        # spec.dns.dnsProvider.credentials.accessKeyId.key is not carried over: the fleet sets no DNS; name servers of a machine are network.staticConfig.dns of its template
        # spec.dns.dnsProvider.credentials.accessKeyId.name is not carried over: the fleet sets no DNS; name servers of a machine are network.staticConfig.dns of its template
        # spec.dns.dnsProvider.type is not carried over: the fleet sets no DNS; name servers of a machine are network.staticConfig.dns of its template
        # spec.dns.domain is not carried over: the fleet sets no DNS; name servers of a machine are network.staticConfig.dns of its template
        # spec.dns.registerVMs is not carried over: the fleet sets no DNS; name servers of a machine are network.staticConfig.dns of its template
        # spec.dns.servers is not carried over: the fleet sets no DNS; name servers of a machine are network.staticConfig.dns of its template
        # status is not carried over: the fleet finds it out again
        {
          "apiVersion": "hyperfleet.io/v1alpha1",
          "kind": "HypervisorCluster",
          "metadata": {
            "labels": {
              "team": "build"
            },
            "name": "pve",
            "namespace": "ci"
          },
          "spec": {
            "credentials": {
              "tokenId": {
                "key": "id",
                "name": "pve-token"
              },
              "tokenSecret": {
                "key": "secret",
                "name": "pve-token"
              }
            },
            "defaultNetwork": "vmbr0",
            "defaultStorage": "local-lvm",
            "endpoint": "https://pve.example.com:8006",
            "nodes": [
              "pve1",
              "pve2"
            ],
            "provider": "proxmox",
            "tags": {
              "Owner": "CI Team",
              "cost-center": "42"
            },
            "tls": {
              "caCertificate": {
                "key": "ca.crt",
                "name": "pve-ca"
              }
            }
          }
        }
        HypervisorMachineTemplate ci/linux
        # spec.resources.memory: 8G is counted in powers of 1000; write 8Gi for powers of 1024
        # spec.resources.disk: 50G becomes 50Gi: Proxmox VE counts in powers of 1024
        # spec.network.dhcp.clientIdentifier is not carried over: the guest decides what its DHCP client sends; use cloudInit.networkData
        # spec.network.dhcp.sendHostname is not carried over: the guest decides what its DHCP client sends; use cloudInit.networkData
        # spec.cloudInit: its image is uploaded to the storage local; set cloudInit.storage if that is another one
        # spec.attestation: it is stored and has no effect yet
        # spec.bootstrap: it is stored and has no effect yet
        # metadata.finalizers is not carried over: the fleet sets its own
        {
          "apiVersion": "hyperfleet.io/v1alpha1",
          "kind": "HypervisorMachineTemplate",
          "metadata": {
            "name": "linux",
            "namespace": "ci"
          },
          "spec": {
            "attestation": {
              "config": {
                "joinTokenTTL": "1h"
              },
              "method": "join-token"
            },
            "bootstrap": {
              "config": {
                "github": {
                  "pat": {
                    "key": "token",
                    "name": "github"
                  },
                  "runner": {
                    "downloadUrl": "https://example.com/runner.tgz",
                    "installPath": "/opt/runner",
                    "labels": [
                      "linux"
                    ]
                  },
                  "url": "https://github.com/acme/web"
                }
              },
              "method": "runner-token"
            },
            "cloudInit": {
              "metaData": "team: build",
              "userData": "#cloud-config\npackages: [git]\n"
            },
            "hypervisorClusterRef": {
              "name": "pve"
            },
            "network": {
              "mode": "static",
              "staticConfig": {
                "dns": [
                  "192.0.2.53"
                ],
                "gateway": "192.0.2.1",
                "ip": "192.0.2.10/24"
              }
            },
            "resources": {
              "cpu": 4,
              "disk": "50Gi",
              "memory": "8G"
            },
            "template": {
              "proxmox": {
                "linkedClone": true,
                "templateId": 9000
              }
            }
          }
        }
        RunnerPool ci/linux
        # spec.foo is not carried over: it is an example of the predecessor's framework
        # spec.workload: it is stored; runners are registered once its config names credentials
        {
          "apiVersion": "hyperfleet.io/v1alpha1",
          "kind": "RunnerPool",
          "metadata": {
            "name": "linux",
            "namespace": "ci"
          },
          "spec": {
            "lifecycle": {
              "idleTimeout": "5m",
              "jobTimeout": "30m",
              "maxLifetime": "1h"
            },
            "scaling": {
              "maxReplicas": 10,
              "minReplicas": 0,
              "scaleDownDelay": "300s"
            },
            "templateRef": {
              "name": "linux"
            },
            "workload": {
              "config": {
                "github": {
                  "labels": [
                    "linux",
                    "x64"
                  ],
                  "organization": "acme"
                }
              },
              "type": "github-actions"
            }
          }
        }
        MachineClaim ci/one
        # spec.workloadConfig: it is stored; runners are registered once its config names credentials
        {
          "apiVersion": "hyperfleet.io/v1alpha1",
          "kind": "MachineClaim",
          "metadata": {
            "name": "one",
            "namespace": "ci"
          },
          "spec": {
            "templateRef": {
              "name": "linux"
            },
            "workloadConfig": {
              "config": {
                "github": {
                  "runnerName": "one"
                }
              },
              "type": "github-actions"
            }
          }
        }
        ConfigMap ci/notes
        # it is of v1, and stays as it is
        {
          "apiVersion": "v1",
          "data": {
            "a": "b"
          },
          "kind": "ConfigMap",
          "metadata": {
            "name": "notes",
            "namespace": "ci"
          }
        }
    "##]].assert_eq(&text);
}

#[test]
fn what_is_converted_can_be_read_as_the_types_of_this_group() {
    let converted: Vec<Value> =
        sample().iter().flat_map(|object| convert(object).unwrap()).map(|converted| converted.object).collect();
    let cluster: HypervisorCluster = serde_json::from_value(converted[0].clone()).unwrap();
    assert!(cluster.spec.tls.ca_certificate.is_some() && !cluster.spec.tls.insecure_skip_verify);
    let template: HypervisorMachineTemplate = serde_json::from_value(converted[1].clone()).unwrap();
    assert_eq!(template.spec.resources.disk.and_then(|disk| disk.bytes()), Some(50 << 30));
    let _: RunnerPool = serde_json::from_value(converted[2].clone()).unwrap();
    let _: MachineClaim = serde_json::from_value(converted[3].clone()).unwrap();
    assert_eq!(converted[4], sample()[4], "other kinds stay as they are");
    // What is converted stays as it is if it is converted again.
    for object in &converted {
        assert_eq!(convert(object).unwrap()[0].object, *object);
    }
}

/// The sample with another value below spec of one object.
fn changed(index: usize, path: &str, value: Value) -> Result<Value, String> {
    let mut object = sample().swap_remove(index);
    *object.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = value;
    match convert(&object) {
        Ok(converted) => Ok(json!({"spec": converted[0].object["spec"], "notes": converted[0].notes})),
        Err(errors) => Err(errors.join("\n")),
    }
}

#[test]
fn what_cannot_be_converted_is_named_with_its_field_and_its_remedy() {
    for (index, path, value, expected) in [
        (0, "/spec/provider", json!("vmware"), "HypervisorCluster ci/pve: spec.provider: vmware is not known"),
        (0, "/spec/endpoint", json!("pve:8006"), "spec.endpoint: it has to start with https://"),
        (0, "/spec/credentials/tokenSecret", Value::Null, "spec.credentials: set tokenId and tokenSecret"),
        (0, "/spec/credentials/tokenId", json!({"name": "x"}), "spec.credentials.tokenId: it needs name and key"),
        (0, "/metadata/name", Value::Null, "metadata.name: it is missing"),
        (1, "/spec/template/proxmox/templateId", json!(0), "spec.template.proxmox.templateId: it has to be a number"),
        (
            1,
            "/spec/network/staticConfig/ip",
            json!("192.0.2.10"),
            "has no prefix; write it with one, such as 192.0.2.10/24",
        ),
        (1, "/spec/resources/memory", json!("much"), "spec.resources.memory: \"much\" is not a quantity such as 8Gi"),
        (1, "/spec/resources/memory", json!(8), "spec.resources.memory: 8 is not a text; put it in quotes"),
        (
            1,
            "/spec/attestation/method",
            json!("none"),
            "spec.attestation.method: \"none\" is not one of join-token, tpm",
        ),
        (2, "/spec/templateRef", Value::Null, "RunnerPool ci/linux: spec.templateRef.name: it is missing"),
        (2, "/spec/lifecycle/maxLifetime", json!("1w"), "spec.lifecycle.maxLifetime: \"1w\" is not a time"),
        (
            3,
            "/spec/workloadConfig/type",
            json!("jenkins"),
            "MachineClaim ci/one: spec.workloadConfig.type: \"jenkins\"",
        ),
    ] {
        let error = if path == "/metadata/name" {
            let mut object = sample().swap_remove(index);
            object["metadata"].as_object_mut().unwrap().remove("name");
            convert(&object).unwrap_err().join("\n")
        } else {
            changed(index, path, value).unwrap_err()
        };
        assert!(error.contains(expected), "{error}");
    }
    assert!(convert(&json!({"kind": "X"})).unwrap_err()[0].contains("apiVersion: it is missing"));
}

#[test]
fn what_means_something_else_is_said() {
    let notes = |index, path, value| changed(index, path, value).unwrap();
    let http = notes(0, "/spec/endpoint", json!("http://pve:8006"));
    assert!(http["spec"]["allowInsecureHttp"] == true && http["notes"].to_string().contains("unencrypted"), "{http:#}");
    let skips = notes(0, "/spec/tls", json!({"insecureSkipVerify": true}));
    assert_eq!(skips["spec"]["tls"], json!({"insecureSkipVerify": true}));
    let designed = json!({"secretKeyRef": {"name": "s", "key": "k", "namespace": "other"}});
    let designed = notes(0, "/spec/credentials/tokenId", designed);
    assert_eq!(designed["spec"]["credentials"]["tokenId"], json!({"name": "s", "key": "k"}));
    assert!(designed["notes"].to_string().contains("copy it from other"), "{designed:#}");
    let bridged = notes(1, "/spec/network/mode", json!("bridge"));
    assert!(bridged["spec"].get("network").is_none(), "{bridged:#}");
    let text = bridged["notes"].to_string();
    assert!(text.contains("without it DHCP is used") && text.contains("spec.network.staticConfig.ip"), "{text}");
    let by_id =
        json!({"type": "gitlab-ci", "config": {"gitlab": {"projectId": "12", "tags": ["pve"], "description": "x"}}});
    let by_id = notes(2, "/spec/workload", by_id);
    assert_eq!(by_id["spec"]["workload"]["config"]["gitlab"], json!({"tags": ["pve"]}));
    assert!(
        by_id["notes"].to_string().contains("gitlab.projectId is not carried over: set project to its path"),
        "{by_id:#}"
    );
    let list = json!({"apiVersion": "v1", "kind": "List", "items": sample()});
    assert_eq!(convert(&list).unwrap().len(), 5);
}
