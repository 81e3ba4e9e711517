// Lets go-proxmox do with a Proxmox VE cluster what a fleet does, once with a ticket and once with a token, and prints each step.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/luthermonson/go-proxmox"
)

func main() {
	authorities := x509.NewCertPool()
	pem, err := os.ReadFile(os.Getenv("PVE_CA"))
	check("read the authority", err)
	authorities.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}}
	client := proxmox.WithHTTPClient(&http.Client{Transport: transport})
	address := os.Getenv("PVE_ADDRESS") + "/api2/json"
	token, secret, _ := strings.Cut(os.Getenv("PVE_TOKEN"), "=")
	credentials := proxmox.Credentials{Username: os.Getenv("PVE_USER"), Password: os.Getenv("PVE_PASSWORD")}
	story("ticket", proxmox.NewClient(address, client, proxmox.WithCredentials(&credentials)))
	story("token", proxmox.NewClient(address, client, proxmox.WithAPIToken(token, secret)))
}

func story(login string, client *proxmox.Client) {
	ctx := context.Background()
	version, err := client.Version(ctx)
	check("version", err)
	nodes, err := client.Nodes(ctx)
	check("nodes", err)
	fmt.Printf("%s: version %s, %d nodes\n", login, version.Release, len(nodes))
	node, err := client.Node(ctx, "pve1")
	check("node", err)
	look(ctx, login, client, node)
	template, err := node.VirtualMachine(ctx, 9000)
	check("template", err)
	id, task, err := template.Clone(ctx, &proxmox.VirtualMachineCloneOptions{Name: "from-go", Description: "owner", Pool: "virtpilot"})
	check("clone", err)
	active, err := node.Tasks(ctx, &proxmox.NodeTasksOptions{Source: "active", TypeFilter: "qmclone"})
	check("tasks", err)
	fmt.Printf("%s: is cloning %v\n", login, len(active) == 1 && active[0].UPID == task.UPID)
	wait(ctx, "clone", task)
	log, err := task.Log(ctx, 0, 500)
	check("log", err)
	fmt.Printf("%s: log %s\n", login, log[len(log)-1])
	machine, err := node.VirtualMachine(ctx, id)
	check("read the clone", err)
	fmt.Printf("%s: cloned %s, template %v\n", login, machine.VirtualMachineConfig.Name, bool(template.Template))
	task, err = machine.Config(ctx, proxmox.VirtualMachineOption{Name: "cores", Value: 3}, proxmox.VirtualMachineOption{Name: "tags", Value: "a;b"})
	check("config", err)
	wait(ctx, "config", task)
	check("synchronous config", machine.ConfigSync(ctx, proxmox.VirtualMachineOption{Name: "onboot", Value: 0}))
	task, err = machine.ResizeDisk(ctx, "scsi0", "+1G")
	check("resize", err)
	wait(ctx, "resize", task)
	task, err = machine.Start(ctx)
	check("start", err)
	wait(ctx, "start", task)
	check("status", machine.Ping(ctx))
	fmt.Printf("%s: %s with %d cores and tags %s\n", login, machine.Status, machine.CPUs, machine.Tags)
	fmt.Printf("%s: address %s\n", login, addresses(ctx, machine))
	if err = guest(ctx, login, machine); err != nil {
		fmt.Printf("%s: guest %v\n", login, err)
	}
	_, err = machine.Delete(ctx)
	fmt.Printf("%s: running: %v\n", login, err)
	task, err = machine.Stop(ctx)
	check("stop", err)
	wait(ctx, "stop", task)
	task, err = machine.Delete(ctx)
	check("delete", err)
	wait(ctx, "delete", task)
	_, err = node.VirtualMachine(ctx, id)
	fmt.Printf("%s: missing: %v\n", login, err)
	storage, err := node.Storage(ctx, "local")
	check("storage", err)
	task, err = storage.Upload("iso", os.Getenv("PVE_ISO"))
	check("upload", err)
	wait(ctx, "upload", task)
	content, err := storage.GetContent(ctx)
	check("content", err)
	fmt.Printf("%s: %d volume in the storage\n", login, len(content))
	iso, err := storage.ISO(ctx, "seed.iso")
	check("iso", err)
	task, err = iso.Delete(ctx)
	check("delete the iso", err)
	wait(ctx, "delete the iso", task)
	cluster, err := client.Cluster(ctx)
	check("cluster", err)
	resources, err := cluster.Resources(ctx, "vm")
	check("resources", err)
	fmt.Printf("%s: %d VM left, done\n", login, len(resources))
}

// look prints what a check of a cluster reads.
func look(ctx context.Context, login string, client *proxmox.Client, node *proxmox.Node) {
	granted, err := client.Permissions(ctx, nil)
	check("permissions", err)
	path := map[string]string{"ticket": "/vms", "token": "/vms/9000"}[login]
	fmt.Printf("%s: may clone %v\n", login, bool(granted[path]["VM.Clone"]))
	cluster, err := client.Cluster(ctx)
	check("cluster", err)
	pools, err := client.Pools(ctx)
	check("pools", err)
	fmt.Printf("%s: cluster %s, quorum %d, pools %s\n", login, cluster.Name, cluster.Quorate, pools[0].PoolID)
	bridges, err := node.Networks(ctx, "bridge")
	check("networks", err)
	vnets, err := cluster.SDNVNets(ctx)
	check("vnets", err)
	names := []string{}
	for _, vnet := range vnets {
		names = append(names, vnet.Name)
	}
	fmt.Printf("%s: bridges %s, VNets %s\n", login, bridges[0].Iface, strings.Join(names, ","))
}

// guest writes a file, reads it and runs a command.
func guest(ctx context.Context, login string, machine *proxmox.VirtualMachine) error {
	check("ping", machine.AgentPing(ctx))
	if err := machine.AgentFileWrite(ctx, "/tmp/a", []byte("hello")); err != nil {
		return err
	}
	// The client encodes the content and lets the server encode it, too.
	file, err := machine.AgentFileRead(ctx, "/tmp/a")
	if err != nil {
		return err
	}
	content, err := base64.StdEncoding.DecodeString(file.Content)
	check("decode the file", err)
	pid, err := machine.AgentExec(ctx, []string{"/bin/sh", "-s"}, "true")
	check("exec", err)
	status, err := machine.WaitForAgentExecExit(ctx, pid, 20)
	check("exec-status", err)
	fmt.Printf("%s: guest says %s, exit code %d\n", login, content, status.ExitCode)
	return nil
}

// addresses asks until the guest agent runs.
func addresses(ctx context.Context, machine *proxmox.VirtualMachine) string {
	for range 200 {
		interfaces, err := machine.AgentGetNetworkIFaces(ctx)
		if err == nil {
			return interfaces[len(interfaces)-1].IPAddresses[0].IPAddress
		}
		if !strings.Contains(err.Error(), "QEMU guest agent is not running") {
			check("agent", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return "none"
}

func wait(ctx context.Context, what string, task *proxmox.Task) {
	check("wait for "+what, task.Wait(ctx, 10*time.Millisecond, 20*time.Second))
	if !task.IsSuccessful {
		check(what, fmt.Errorf("the task ended with %q", task.ExitStatus))
	}
}

func check(what string, err error) {
	if err != nil {
		fmt.Println("FAILED", what+":", err)
		os.Exit(1)
	}
}
