// floor is what quorate's boot is measured against: etcd, its health, then kube-apiserver, and nothing else. The
// benchmark runs it as a VM's agent, with certificates and flags that are ready-made, so that network, disk and
// programs are the same.
//
//	floor DIR
//
// DIR/<host name>/etcd.args and kube-apiserver.args hold one argument a line, the program first; delay is how long to
// wait before all; DIR/health is the URL that says when etcd serves; DIR/endpoint is the load balancer's address, which
// becomes one of the VM's own, so that the health checks arrive. DIR/<host name>/others, if there is one, names what
// else is started, a line for each, once DIR/<host name>/ready, a URL, says that the apiserver is ready. The program
// imports little: its own start takes a millisecond.
package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// logs is where a VM's components write, as under quorate.
const logs = "/var/log/quorate"

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "floor: "+err.Error())
		os.Exit(1)
	}
}

func run(dir string) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	health, err := os.ReadFile(filepath.Join(dir, "health"))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, host, "delay"))
	if err != nil {
		return err
	}
	delay, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	begin := time.Now()
	time.Sleep(delay)
	etcd, err := start(filepath.Join(dir, host, "etcd.args"), "etcd.log")
	if err != nil {
		return err
	}
	if err := takeEndpoint(filepath.Join(dir, "endpoint")); err != nil {
		return err
	}
	awaitOK(string(health))
	// The same line as the agent's, for the same reader.
	fmt.Fprintf(os.Stderr, "level=INFO msg=\"phase done\" phase=etcd took=%s\n",
		time.Since(begin).Round(time.Millisecond))
	if _, err := start(filepath.Join(dir, host, "kube-apiserver.args"), "kube-apiserver.log"); err != nil {
		return err
	}
	if err := startOthers(filepath.Join(dir, host)); err != nil {
		return err
	}
	return etcd.Wait()
}

// takeEndpoint makes the address in a file local: the load balancer's packets keep it.
func takeEndpoint(file string) error {
	address, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	out, err := exec.Command("ip", "route", "replace", "local", string(address), "dev", "lo").CombinedOutput()
	if err != nil {
		return fmt.Errorf("take the endpoint %s: %w: %s", address, err, out)
	}
	return nil
}

// startOthers starts what the file of their names says, if there is one.
func startOthers(dir string) error {
	names, err := os.ReadFile(filepath.Join(dir, "others"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	ready, err := os.ReadFile(filepath.Join(dir, "ready"))
	if err != nil {
		return err
	}
	awaitOK(string(ready))
	for _, name := range strings.Fields(string(names)) {
		if _, err := start(filepath.Join(dir, name+".args"), name+".log"); err != nil {
			return err
		}
	}
	return nil
}

// start runs the program of an argument file.
func start(file, log string) (*exec.Cmd, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out, err := os.Create(filepath.Join(logs, log))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	args := strings.Split(strings.TrimSpace(string(text)), "\n")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, cmd.Start()
}

// awaitOK asks until the answer is 200: etcd's /health after a read through its quorum, an apiserver's /readyz.
func awaitOK(url string) {
	// The apiserver's certificate is of an authority that only its clients know, and nothing is told to it.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for {
		resp, err := client.Get(strings.TrimSpace(url))
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}
