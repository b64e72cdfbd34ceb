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

var privateKey = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)

// Nothing in the folders of settings and of state is a key. Programs are left out: theirs say how a key begins.
func TestTheTreeHoldsNoKey(t *testing.T) {
	tree := filepath.Join(baked(t), "root.tar")
	text := run(t, "tar", "-xOf", tree, "--wildcards", "./etc/*", "./root*", "./home*", "./opt*", "./srv*", "./var/*")
	if len(text) < 1<<16 {
		t.Fatalf("only %d bytes were read", len(text))
	}
	if found := privateKey.FindString(text); found != "" {
		t.Errorf("the image has a file with %q", found)
	}
}

// The numbers of the components' users are fixed: the data disk, whose files they own, outlives the image.
func TestTheTreeHasTheComponentsUsers(t *testing.T) {
	passwd := run(t, "tar", "-xOf", filepath.Join(baked(t), "root.tar"), "./etc/passwd")
	for name, id := range map[string]string{"etcd": "951", "kube-apiserver": "952", "kube-scheduler": "953",
		"kube-controller-manager": "954", "cluster-autoscaler": "955", "addons": "956"} {
		if !strings.Contains("\n"+passwd, "\n"+name+":x:"+id+":"+id+":") {
			t.Errorf("no user %s with the number %s in:\n%s", name, id, passwd)
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
