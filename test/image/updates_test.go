package image

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// held are the names that unattended-upgrades leaves alone, as it reads them: from their beginning.
func held(t *testing.T) func(string) bool {
	t.Helper()
	if _, err := exec.LookPath("apt-config"); err != nil {
		t.Skip(err)
	}
	out := run(t, "env", "APT_CONFIG="+master+"files/master/etc/apt/apt.conf.d/60quorate", "apt-config", "dump",
		"--format=%f=%v%n", "Unattended-Upgrade")
	if !strings.Contains(out, "Unattended-Upgrade::Automatic-Reboot=false\n") {
		t.Errorf("the machine may reboot by itself: %s", out)
	}
	var patterns []string
	for _, m := range regexp.MustCompile(`(?m)^Unattended-Upgrade::Package-Blacklist::=(.+)$`).FindAllStringSubmatch(out, -1) {
		patterns = append(patterns, m[1])
	}
	if len(patterns) == 0 {
		t.Fatalf("no package is left alone: %s", out)
	}
	return regexp.MustCompile("^(" + strings.Join(patterns, "|") + ")").MatchString
}

// A master takes security updates by itself only where nothing of the control plane or of its pods restarts for them.
func TestUnattendedUpgradesLeaveTheRuntimeAndTheKernelAlone(t *testing.T) {
	left := held(t)
	for name, want := range map[string]bool{"containerd": true, "runc": true, "linux-image-cloud-amd64": true,
		"linux-image-6.1.0-53-cloud-amd64": true, "linux-image-cloud-arm64": true, "initramfs-tools-core": true,
		"containernetworking-plugins": false, "openssl": false, "libc6": false, "systemd": false, "curl": false} {
		if left(name) != want {
			t.Errorf("%s is left alone: %t, want %t", name, left(name), want)
		}
	}
}

// What a package does at its upgrade stands in its scripts.
func TestNoPackageOfTheImageRestartsAMaster(t *testing.T) {
	image := baked(t)
	left, tree := held(t), t.TempDir()
	run(t, "tar", "-C", tree, "-xf", filepath.Join(image, "root.tar"), "./var/lib/dpkg/info")
	scripts, err := filepath.Glob(filepath.Join(tree, "var/lib/dpkg/info/*.p[ro]*"))
	if err != nil || len(scripts) < 20 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	ours := regexp.MustCompile(`(?m)^[^#\n]*(systemctl|deb-systemd-invoke|invoke-rc\.d)[^\n]*\b(quorate|kubelet|containerd)\b`)
	found := 0
	for _, script := range scripts {
		name, _, _ := strings.Cut(filepath.Base(script), ".")
		if line := ours.FindString(read(t, script)); line != "" {
			found++
			if !left(name) {
				t.Errorf("an upgrade of %s may run: %s", name, strings.TrimSpace(line))
			}
		}
	}
	if found == 0 {
		t.Error("not even containerd's script restarts it: this test no longer knows them")
	}
}
