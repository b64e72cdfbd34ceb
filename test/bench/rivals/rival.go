package rivals

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"time"
)

//go:embed files
var files embed.FS

// The rivals' names, as the tables have them.
const (
	Quorate   = "quorate"
	Unwatched = "quorate, its watch off" // not a rival: what the watch costs is the difference
	Systemd   = "WatchdogSec alone"
	MonitFast = "monit, 5 s"
	MonitSlow = "monit, 120 s"
	Loop      = "health-monitor, 10 s"
)

// Names are the rivals, in the tables' order.
var Names = []string{Quorate, Systemd, MonitFast, MonitSlow, Loop}

// rival is one way of watching.
type rival struct {
	name string
	// period is the time between two of its checks. Faults begin at any moment of it.
	period time.Duration
	// install puts it into its VM.
	install func(ctx context.Context, v *vm) error
	// words are when it has said of either unit that something is wrong, since a time.
	words func(ctx context.Context, v *vm, since time.Time) ([]time.Time, error)
	// programs are the command lines of its own processes, by how they begin, as /proc has them.
	programs []string
}

func all() []rival {
	return []rival{
		{Quorate, 15 * time.Second, nothing, wordsOfQuorate, []string{"/usr/local/bin/quorate agent"}},
		{Systemd, 15 * time.Second, nothing, wordsOf("_PID=1 UNIT=kubelet.service + _PID=1 UNIT=containerd.service"), nil},
		{MonitFast, 5 * time.Second, installMonit("set daemon 5"), wordsOfMonit, []string{"/opt/rival/monit -I"}},
		{MonitSlow, 120 * time.Second, installMonit("set daemon 120 with start delay 120"), wordsOfMonit,
			[]string{"/opt/rival/monit -I"}},
		{Loop, 10 * time.Second, installLoop, wordsOf("_SYSTEMD_UNIT=kubelet-monitor.service + "+
			"_SYSTEMD_UNIT=runtime-monitor.service", "unhealthy"),
			[]string{"/bin/sh /opt/rival/kubelet-monitor.sh", "/bin/sh /opt/rival/runtime-monitor.sh"}},
	}
}

// nothing is installed where the image has all that watches.
func nothing(context.Context, *vm) error { return nil }

// file is one of the embedded files.
func file(name string) string {
	text, err := files.ReadFile("files/" + name)
	if err != nil {
		panic("rivals: " + err.Error()) // it is embedded by its name
	}
	return string(text)
}

// installMonit has monit start and stop the two units. systemd restarts nothing, as no init did then.
func installMonit(daemon string) func(context.Context, *vm) error {
	return func(ctx context.Context, v *vm) error {
		const unit = "[Service]\nRestart=no\nWatchdogSec=0\nExecStartPost=/bin/sh -c \"echo $MAINPID > /run/%s.pid\"\n"
		if err := v.dropIn("kubelet", fmt.Sprintf(unit, "kubelet")); err != nil {
			return err
		}
		if err := v.dropIn("containerd", fmt.Sprintf(unit, "containerd")); err != nil {
			return err
		}
		if err := v.write("/opt/rival/monitrc", daemon+"\n"+file("monitrc"), 0o600); err != nil {
			return err
		}
		if err := v.copy(v.monit, "/opt/rival/monit"); err != nil {
			return err
		}
		return v.run(ctx, `printf '\n[metrics]\n  address = "127.0.0.1:1338"\n' >> /etc/containerd/config.toml
			systemctl daemon-reload && systemctl restart containerd kubelet
			systemd-run --quiet --unit=monit -p Restart=always /opt/rival/monit -I -c /opt/rival/monitrc`)
	}
}

// installLoop installs the two loops as the units that kube-up had.
func installLoop(ctx context.Context, v *vm) error {
	if err := v.dropIn("kubelet", "[Service]\nWatchdogSec=0\nRestartSec=10\n"); err != nil {
		return err
	}
	script := "systemctl daemon-reload && systemctl restart kubelet\n"
	for _, name := range []string{"kubelet-monitor", "runtime-monitor"} {
		if err := v.write("/opt/rival/"+name+".sh", file(name+".sh"), 0o755); err != nil {
			return err
		}
		script += "systemd-run --quiet --unit=" + name + " -p Restart=always -p RestartSec=10 /bin/sh /opt/rival/" +
			name + ".sh\n"
	}
	return v.run(ctx, script)
}

// wordsOf are lines of the VM's journal; with texts, those that have one of them.
func wordsOf(matches string, texts ...string) func(context.Context, *vm, time.Time) ([]time.Time, error) {
	return func(ctx context.Context, v *vm, since time.Time) ([]time.Time, error) {
		out, err := v.sh(ctx, fmt.Sprintf("journalctl -o json --no-pager --since=@%d %s", since.Unix(), matches))
		if err != nil {
			return nil, err
		}
		return linesOfJournal(out, since, texts)
	}
}

// wordsOfMonit leaves out what it says of processes that others have started.
func wordsOfMonit(ctx context.Context, v *vm, since time.Time) ([]time.Time, error) {
	return wordsOf("SYSLOG_IDENTIFIER=monit", "failed", "not running", "restart")(ctx, v, since)
}

// wordsOfQuorate are in the agent's log, which the VM's serial console has, too.
func wordsOfQuorate(_ context.Context, v *vm, since time.Time) ([]time.Time, error) {
	at, err := linesOfAgent(v.logFolder()+".log", since)
	if err != nil {
		return nil, fmt.Errorf("read what the agent says: %w", err)
	}
	return at, nil
}

// wellStates are what the agent calls a unit of which nothing is wrong, or that waits for the other one.
var wellStates = strings.Fields("running starting waiting busy runtime-first no-apiserver")
