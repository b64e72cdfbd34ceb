package localgce_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
)

func configIn(state string, n int, vms ...string) localgce.Config {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	c := localgce.Config{
		State: state, Subnet: netip.MustParsePrefix(fmt.Sprintf("10.243.%d.0/25", n)), DiskSize: 32 << 20,
		Agent:      localgce.Agent{Command: []string{"/usr/local/bin/tiny", "tiny-agent"}, Watchdog: 500 * time.Millisecond},
		Binds:      []localgce.Bind{{Host: self, Guest: "/usr/local/bin/tiny", ReadOnly: true}},
		Log:        slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Attributes: map[string]string{"quorate-cluster": "name: demo"},
	}
	for i, name := range vms {
		c.VMs = append(c.VMs, localgce.VMConfig{Name: name, Zone: "us-central1-" + string(rune('a'+i))})
	}
	return c
}

func projectProcess(a, b string) int { return 0 }

func TestSmoke(t *testing.T) {
	c := config(t, 10, "a", "b", "c")
	start := time.Now()
	p, err := localgce.Start(context.Background(), c)
	if err != nil {
		b, _ := os.ReadFile(c.State + "/logs/a.log")
		t.Fatal(err, string(b))
	}
	t.Log("up", time.Since(start))
	time.Sleep(500 * time.Millisecond)
	cmd, _ := p.Command(context.Background(), "a", "sh", "-c", "hostname; cat /proc/self/cgroup; ps axf; mount; ip a; ip r; cat /proc/sys/kernel/random/boot_id; ping -c1 -W1 10.243.10.3; ls -l /dev/disk/by-id; curl -sH 'Metadata-Flavor: Google' 'http://metadata.google.internal/computeMetadata/v1/?recursive=true'; curl -s http://10.243.10.1:8080/compute/v1/projects/quorate-local/aggregated/instances; tail -3 /run/environment")
	out, err := cmd.CombinedOutput()
	t.Log(string(out), err)
	start = time.Now()
	if err := p.KillVM(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	t.Log("kill", time.Since(start))
	if err := p.StartVM(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	t.Log("kill+start", time.Since(start))
	time.Sleep(time.Second)
	t.Logf("%+v", p.Status())
	start = time.Now()
	if err := p.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Log("close", time.Since(start))
	b, _ := os.ReadFile(c.State + "/logs/a.log")
	t.Log(string(b))
}
