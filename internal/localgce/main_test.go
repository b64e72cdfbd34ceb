package localgce_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/realtest"
)

// TestMain is also the VMs' pid 1, what runs in them, and a project's process of its own.
func TestMain(m *testing.M) {
	localgce.RunInitIfAsked()
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "tiny":
			os.Exit(tiny(os.Args[2], os.Args[3:]))
		case "project":
			os.Exit(projectProcess(os.Args[2], strings.Join(os.Args[3:], " ")))
		}
	}
	realtest.AtOnce(4) // they wait for VMs
	os.Exit(m.Run())
}

// tiny is the program in the VMs.
func tiny(verb string, args []string) int {
	switch verb {
	case "agent":
		tinyAgent()
	case "knock": // how a call ends where nobody answers
		_, err := net.DialTimeout("tcp", args[0]+":443", 5*time.Second)
		fmt.Print(err)
	case "sink": // takes in what pour sends
		if l, err := net.Listen("tcp", ":9000"); err == nil {
			if c, err := l.Accept(); err == nil {
				_, _ = io.Copy(io.Discard, c)
				c.Close()
			}
		}
	case "listen": // takes calls at a port
		if l, err := net.Listen("tcp", ":"+args[0]); err == nil {
			for err == nil {
				_, err = l.Accept()
			}
		}
	case "dial": // whether a port takes a call
		if _, err := net.DialTimeout("tcp", args[0], time.Second); err != nil {
			fmt.Println(err)
			return 1
		}
	case "pour": // how long 2 MiB take until the other end has them
		fmt.Println(pour(args[0]))
	case "hold": // how a connection ends
		if c, err := tls.Dial("tcp", args[0]+":443", &tls.Config{InsecureSkipVerify: true}); err == nil {
			fmt.Println("connected")
			if _, err := c.Read(make([]byte, 1)); err != nil && !errors.Is(err, io.EOF) {
				fmt.Println("broken")
			}
		}
	case "get", "post":
		body, err := ask(strings.ToUpper(verb), args[0], time.Second)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Print(body)
	}
	return 0
}

func pour(to string) time.Duration {
	var c net.Conn
	for err := io.EOF; err != nil; time.Sleep(10 * time.Millisecond) { // it may not listen yet
		c, err = net.DialTimeout("tcp", to+":9000", time.Second)
	}
	began := time.Now()
	_, _ = c.Write(make([]byte, 2<<20))
	_ = c.(*net.TCPConn).CloseWrite()
	_, _ = c.Read(make([]byte, 1))
	return time.Since(began)
}

// tinyAgent does what the tests observe: it says that it is ready, leaves a child, makes the endpoint's address local,
// serves its VM's name and /readyz on the endpoint's port, and pings the watchdog until /run/no-pings exists.
func tinyAgent() {
	takeEndpoint()
	_ = os.WriteFile("/run/environment", []byte(strings.Join(os.Environ(), "\n")+"\n"), 0o600)
	_ = exec.Command("sleep", "1000").Start()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat("/run/not-ready"); err == nil && r.URL.Path != "/name" {
			http.Error(w, "not ready", http.StatusInternalServerError)
			return
		}
		name, _ := os.Hostname()
		fmt.Fprint(w, name)
	}))
	server.Listener.Close()
	var err error
	if server.Listener, err = net.Listen("tcp", ":443"); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	server.StartTLS()
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	fmt.Println("the tiny agent is ready")
	notify("READY=1\nSTATUS=all is well")
	for {
		select {
		case <-term:
			_ = os.WriteFile("/var/lib/quorate/stopped-in-order", nil, 0o600)
			return
		case <-time.After(50 * time.Millisecond):
			if _, err := os.Stat("/run/no-pings"); err != nil {
				notify("WATCHDOG=1")
			}
		}
	}
}

// takeEndpoint makes the route for what the metadata says is forwarded, as Google's guest agent does.
func takeEndpoint() {
	const nic = "http://169.254.169.254/computeMetadata/v1/instance/network-interfaces/0/"
	address, err := ask("GET", nic+"forwarded-ips", time.Second)
	if err == nil {
		var out []byte
		out, err = exec.Command("ip", "route", "replace", "to", "local", strings.TrimSpace(address)+"/32", "dev", "eth0",
			"proto", "66").CombinedOutput()
		fmt.Print(string(out))
	}
	if err != nil {
		fmt.Println("the endpoint's route:", err)
	}
}

func notify(message string) {
	conn, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err == nil {
		_, _ = conn.Write([]byte(message))
		conn.Close()
	}
}

// fetch asks with a connection of its own.
func fetch(url string, timeout time.Duration) (string, error) {
	return ask(http.MethodGet, url, timeout)
}

func ask(method, url string, timeout time.Duration) (string, error) {
	c := http.Client{Timeout: timeout, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Metadata-Flavor", "Google")
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// config is a project in 10.243.<n>.0/25 whose VMs run the tiny agent.
func config(state string, n int, vms ...string) localgce.Config {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	c := localgce.Config{
		State: state, Prompt: true, Subnet: netip.MustParsePrefix(fmt.Sprintf("10.243.%d.0/25", n)), DiskSize: 32 << 20,
		Agent: localgce.Agent{Command: []string{"/usr/local/bin/tiny", "tiny", "agent"},
			Env: []string{"COLOUR=blue"}, Watchdog: 2 * time.Second,
			TimerSlack: 700 * time.Microsecond},
		Binds:      []localgce.Bind{{Host: self, Guest: "/usr/local/bin/tiny", ReadOnly: true}},
		Attributes: map[string]string{"quorate-cluster": "name: demo"},
	}
	for i, name := range vms {
		c.VMs = append(c.VMs, localgce.VMConfig{Name: name, Zone: "us-central1-" + string(rune('a'+i))})
	}
	return c
}

// needRoot skips where no project can be made.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces, mounts, loop devices")
	}
}

// world is a project under test.
type world struct {
	*localgce.Project
	t    *testing.T
	conf localgce.Config
}

// start makes a project and, at the test's end, closes it and looks for what it has left behind.
func start(t *testing.T, conf localgce.Config) world {
	t.Helper()
	needRoot(t)
	conf.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	p, err := localgce.Start(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	if seen := traces(t, conf.State); len(seen) < 5 { // two namespaces, a cgroup, a disk, an init
		t.Errorf("a project that is up shows too little for the check at its end to say anything: %q", seen)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
		wantNoTraces(t, conf.State)
	})
	return world{p, t, conf}
}

// do fails the test where err is one.
func (w world) do(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// in runs a shell script in a VM.
func (w world) in(vm, script string) (string, error) {
	w.t.Helper()
	cmd, err := w.Command(w.t.Context(), vm, "sh", "-c", script)
	if err != nil {
		return "", err
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must runs a shell script in a VM and wants it to succeed.
func (w world) must(vm, script string) string {
	w.t.Helper()
	out, err := w.in(vm, script)
	if err != nil {
		w.t.Fatalf("in %s: %s: %v\n%s", vm, script, err, out)
	}
	return out
}

// reaches says whether a VM's tiny program gets an answer.
func (w world) reaches(vm, url string) bool {
	w.t.Helper()
	_, err := w.in(vm, "/usr/local/bin/tiny tiny get "+url)
	return err == nil
}

func (w world) address(vm string) string { return w.vm(vm).Address }

func (w world) vm(name string) localgce.VMStatus {
	w.t.Helper()
	for _, v := range w.Status().VMs {
		if v.Name == name {
			return v
		}
	}
	w.t.Fatalf("no vm %s", name)
	return localgce.VMStatus{}
}

// patience is far above what anything here takes: other packages' tests may have the processors.
const patience = time.Minute

// await polls until ok says so.
func (w world) await(what string, ok func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: not within %s; %+v", what, patience, w.Status())
		}
	}
}

func (w world) awaitReady(vms ...string) {
	w.t.Helper()
	for _, name := range vms {
		w.await(name+" is ready", func() bool { return w.vm(name).Agent.State == "ready" })
	}
}
