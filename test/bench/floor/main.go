// floor is what quorate's boot is measured against: etcd, its health, then kube-apiserver, and nothing else. The
// benchmark runs it as a VM's agent, with certificates and flags that are ready-made, so that network, disk and
// programs are the same.
//
//	floor DIR
//
// DIR/<host name>/etcd.args and apiserver.args hold one argument a line, the program first; delay is how long to wait
// before all; DIR/health is the URL that says when etcd serves. The program imports little: its own start takes a
// millisecond.
package main

import (
	"fmt"
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
	for !healthy(string(health)) {
		time.Sleep(5 * time.Millisecond)
	}
	// The same line as the agent's, for the same reader.
	fmt.Fprintf(os.Stderr, "level=INFO msg=\"phase done\" phase=etcd took=%s\n",
		time.Since(begin).Round(time.Millisecond))
	if _, err := start(filepath.Join(dir, host, "apiserver.args"), "kube-apiserver.log"); err != nil {
		return err
	}
	return etcd.Wait()
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

// healthy asks whether etcd answers a read through its quorum.
func healthy(url string) bool {
	resp, err := http.Get(strings.TrimSpace(url))
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
