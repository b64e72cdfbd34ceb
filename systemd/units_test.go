package systemd

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coreos/go-systemd/v22/unit"
)

func readUnit(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("units/quorate.service")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What the agent relies on: each of these was a failure somewhere else.
func TestUnitSaysWhatTheAgentReliesOn(t *testing.T) {
	options, err := unit.DeserializeOptions(bytes.NewReader(readUnit(t)))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, o := range options {
		if _, double := values[o.Section+"."+o.Name]; double {
			t.Errorf("%s stands twice", o.Name)
		}
		values[o.Section+"."+o.Name] = o.Value
	}
	for name, want := range map[string]string{
		"Unit.StartLimitIntervalSec": "0", "Unit.RequiresMountsFor": "/var/lib/quorate",
		"Unit.Wants": "network-online.target time-sync.target", "Unit.After": "network-online.target time-sync.target",
		"Service.Type": "notify", "Service.NotifyAccess": "main", "Service.KillMode": "mixed",
		"Service.Delegate":         "yes",
		"Service.RuntimeDirectory": "quorate", "Service.RuntimeDirectoryPreserve": "yes",
		"Service.OOMPolicy": "continue", "Service.OOMScoreAdjust": "-998", "Service.Nice": "-5",
		"Service.WatchdogSec": "30s", "Service.TimeoutStopSec": "150s",
		"Service.Restart": "always", "Service.RestartSec": "1s", "Service.ExecStart": "/usr/local/bin/quorate agent",
		"Install.WantedBy": "multi-user.target",
	} {
		if values[name] != want {
			t.Errorf("%s is %q, want %q", name, values[name], want)
		}
	}
}

// systemd's own reader must find nothing to remark, also not an option that it does not know.
func TestUnitIsVerifiedBySystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	verify := func(text []byte) string {
		file := filepath.Join(t.TempDir(), "quorate.service")
		// The program need not be installed here; any that exists will do.
		text = bytes.Replace(text, []byte("ExecStart=/usr/local/bin/quorate "), []byte("ExecStart="+self+" "), 1)
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput()
		var ours []string
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "quorate") {
				ours = append(ours, line)
			}
		}
		if err != nil && len(ours) == 0 {
			t.Logf("systemd-analyze: %v: %s", err, out)
		}
		return strings.Join(ours, "")
	}
	text := readUnit(t)
	if remarks := verify(text); remarks != "" {
		t.Errorf("systemd remarks: %s", remarks)
	}
	if remarks := verify(append(text, "[Service]\nWatchdogSeconds=3\n"...)); !strings.Contains(remarks,
		"WatchdogSeconds") {
		t.Errorf("systemd overlooks an unknown option, so this test shows nothing; it said %q", remarks)
	}
}
