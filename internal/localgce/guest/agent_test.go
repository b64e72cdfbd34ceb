package guest

import (
	"testing"
	"time"
)

func TestAnAgentsSettingsAreADropIn(t *testing.T) {
	if got := (Agent{}).dropIn(); got != "[Service]\n" {
		t.Errorf("nothing is given, and the unit is changed: %s", got)
	}
	got := (Agent{Command: []string{"/bin/agent", `a "b" $HOME 5%`}, Env: []string{"A=x y"},
		Watchdog: 1500 * time.Millisecond}).dropIn()
	want := "[Service]\nExecStart=\nExecStart=\"/bin/agent\" \"a \\\"b\\\" $$HOME 5%%\"\nEnvironment=\"A=x y\"\n" +
		"WatchdogSec=1500ms\n"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
