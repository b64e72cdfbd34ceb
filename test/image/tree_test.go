package image

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What one machine alone should have is not in an image, or all of its VMs share it.
func TestTheTreeHoldsNothingOfOneMachine(t *testing.T) {
	tree := filepath.Join(baked(t), "root.tar")
	forbidden := regexp.MustCompile(`^\./(etc/hostname|etc/ssh/ssh_host_.*|etc/nvme/host.*|var/lib/dbus/machine-id|` +
		`var/lib/systemd/random-seed|var/log/.+|root/\..*history|etc/ssl/private/.+)$`)
	names := run(t, "tar", "-tf", tree)
	for name := range strings.Lines(names) {
		if name = strings.TrimSpace(name); forbidden.MatchString(name) {
			t.Errorf("the image has %s", name)
		}
	}
	for _, name := range []string{"./usr/local/bin/quorate", "./etc/machine-id"} {
		if !strings.Contains(names, name+"\n") {
			t.Errorf("the image has no %s", name)
		}
	}
	if id := run(t, "tar", "-xOf", tree, "./etc/machine-id"); id != "" {
		t.Errorf("the machine-id is %q, want none", id)
	}
	for line := range strings.Lines(run(t, "tar", "-xOf", tree, "./etc/shadow")) {
		if password := strings.Split(line, ":")[1]; password != "*" && !strings.HasPrefix(password, "!") {
			t.Errorf("somebody can log in with a password: %s", line)
		}
	}
}
