package image

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
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

// A bake of another day makes the same tree: the manifest's epoch is the newest time in it.
func TestTheTreeKnowsNoClockButTheManifests(t *testing.T) {
	tree := filepath.Join(baked(t), "root.tar")
	var epoch time.Time
	for _, line := range words(t, manifests[os.Getenv("ARCH")]) {
		if line[0] == "epoch" {
			seconds, err := strconv.ParseInt(line[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			epoch = time.Unix(seconds, 0).UTC()
		}
	}
	newest := ""
	for line := range strings.Lines(run(t, "env", "TZ=UTC", "tar", "--full-time", "-tvf", tree)) {
		f := strings.Fields(line)
		newest = max(newest, f[3]+" "+f[4])
	}
	if want := epoch.Format(time.DateTime); newest != want {
		t.Errorf("the newest file is of %s, and the manifest's epoch is %s", newest, want)
	}
	day := strconv.FormatInt(epoch.Unix()/86400, 10)
	for line := range strings.Lines(run(t, "tar", "-xOf", tree, "./etc/shadow")) {
		if changed := strings.Split(line, ":")[2]; changed != day {
			t.Errorf("an account was changed on day %s, want the manifest's %s: %s", changed, day, line)
		}
	}
}
