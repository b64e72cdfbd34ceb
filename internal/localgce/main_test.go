package localgce_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
)

// TestMain is also the VMs' pid 1, their agent, and a project's process of its own.
func TestMain(m *testing.M) {
	localgce.RunInitIfAsked()
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "tiny-agent":
			tinyAgent()
			return
		case "project":
			os.Exit(projectProcess(os.Args[2], os.Args[3]))
		}
	}
	os.Exit(m.Run())
}

// tinyAgent does what the tests look at: it says that it is ready, leaves a child, serves /readyz on the endpoint's port, and
// pings the watchdog until /run/no-pings exists.
func tinyAgent() {
	fmt.Println("tiny agent", os.Getpid())
	_ = os.WriteFile("/run/environment", []byte(strings.Join(os.Environ(), "\n")), 0o600)
	child := exec.Command("sleep", "1000")
	_ = child.Start()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat("/run/not-ready"); err == nil {
			http.Error(w, "not ready", http.StatusInternalServerError)
			return
		}
		name, _ := os.Hostname()
		fmt.Fprint(w, name)
	}))
	server.Listener, _ = net.Listen("tcp", ":443")
	server.StartTLS()
	notify("READY=1\nSTATUS=all is well")
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
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

func notify(message string) {
	conn, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err == nil {
		_, _ = conn.Write([]byte(message))
		conn.Close()
	}
}

// config is a project with the tiny agent and VMs a, b, c in a range of its own. Each caller's range is 10.243.<n>.0/25.
func config(t *testing.T, n int, vms ...string) localgce.Config {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: namespaces, mounts, loop devices")
	}
	return configIn(t.TempDir(), n, vms...)
}
