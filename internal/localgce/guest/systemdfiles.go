package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/localgce/instance"
)

// foreign are units of the image that would touch hardware, clock or file systems of the machine, or do by themselves
// what the project does.
var foreign = []string{
	// The clock is the machine's, and chronyd would set it.
	"chrony.service", "chrony-wait.service", "systemd-timesyncd.service",
	// There is no DHCP: the project gives each VM its address before it boots, and networkd would take it away.
	"systemd-networkd.service", "systemd-networkd.socket", "systemd-networkd-wait-online.service",
	// Disks, modules and devices are the machine's. udev sees none: /sys is read-only.
	"systemd-udevd.service", "systemd-udevd-control.socket", "systemd-udevd-kernel.socket",
	"systemd-udev-trigger.service", "systemd-udev-settle.service", "systemd-modules-load.service", "modprobe@.service",
	"systemd-repart.service", "quorate-growfs.service", "systemd-remount-fs.service",
	"e2scrub_reap.service", "e2scrub_all.timer", "fstrim.timer",
	"sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-kernel-config.mount", "sys-fs-fuse-connections.mount",
	"dev-hugepages.mount", "dev-mqueue.mount",
	// The kernel's audit log is the machine's.
	"systemd-journald-audit.socket",
	// Nobody logs in at the console, which is only written to.
	"getty.target", "systemd-logind.service",
}

// file is one that is written onto the VM's boot disk before systemd starts.
type file struct{ path, text string }

// imageFiles is what a VM without a kernel and without devices of its own needs beside its image. A master on Google
// Compute Engine has none of these files.
func (s Spec) imageFiles() []file {
	return []file{
		// DHCP would say it.
		{"etc/systemd/resolved.conf.d/localgce.conf", "[Resolve]\nDNS=" + instance.MetadataAddress +
			"\nDomains=" + s.domains() + "\n"},
		// The boot disk is memory. A test may read every line, however many they are.
		{"etc/systemd/journald.conf.d/zz-localgce.conf",
			"[Journal]\nStorage=volatile\nRuntimeMaxUse=64M\nRateLimitIntervalSec=0\nReadKMsg=no\n"},
		// A kubelet refuses a machine with cgroup version 1, or with swap, unless it is told that this is meant.
		{"etc/kubernetes/kubelet.conf.d/90-localgce.conf", "apiVersion: kubelet.config.k8s.io/v1beta1\n" +
			"kind: KubeletConfiguration\nfailCgroupV1: false\nfailSwapOn: false\n"},
		// Without modules of its own there is nothing to load: the kernel has overlay, or the VM would not run.
		{"etc/systemd/system/containerd.service.d/localgce.conf", "[Service]\nExecStartPre=\n"},
		{"etc/systemd/system/quorate.service.d/localgce.conf", s.Agent.dropIn()},
		// ProtectKernelTunables= gives a unit a /proc of its own, and in that one the boot id is the machine's.
		{"etc/systemd/system/quorate.service.d/boot-id.conf",
			"[Service]\nBindReadOnlyPaths=/run/boot_id:/proc/sys/kernel/random/boot_id\n"},
	}
}

// dropIn changes quorate.service as the project wants it; what is not given stays the image's.
func (a Agent) dropIn() string {
	var b strings.Builder
	b.WriteString("[Service]\n")
	if len(a.Command) > 0 {
		var words []string
		for _, w := range a.Command {
			words = append(words, unitWord(w))
		}
		fmt.Fprintf(&b, "ExecStart=\nExecStart=%s\n", strings.Join(words, " "))
	}
	for _, e := range a.Env {
		fmt.Fprintf(&b, "Environment=%s\n", unitWord(e))
	}
	if a.Watchdog > 0 {
		fmt.Fprintf(&b, "WatchdogSec=%dms\n", a.Watchdog/time.Millisecond)
	}
	return b.String()
}

// unitWord writes a word so that systemd reads it as it is.
func unitWord(w string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, `$`, `$$`, "\n", `\n`).Replace(w) + `"`
}

// writeImageFiles writes onto the boot disk what the VM needs beside its image.
func (s Spec) writeImageFiles(root string) error {
	for _, f := range s.imageFiles() {
		path := filepath.Join(root, f.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write the VM's files: %w", err)
		}
		if err := os.WriteFile(path, []byte(f.text), 0o644); err != nil {
			return fmt.Errorf("write the VM's files: %w", err)
		}
	}
	for _, unit := range append(s.Systemd.Masked, foreign...) {
		path := filepath.Join(root, "etc/systemd/system", unit)
		if err := errors.Join(os.RemoveAll(path), os.Symlink(os.DevNull, path)); err != nil {
			return fmt.Errorf("mask %s: %w", unit, err)
		}
	}
	return errors.Join(
		edit(root, "etc/containerd/config.toml", letScoresBe),
		edit(root, "usr/lib/systemd/system/quorate-data-disk.service", withoutDeviceUnit),
	)
}

// edit changes a file of the image, because what has to be changed cannot be in a file beside it.
func edit(root, path string, change func(string) (string, error)) error {
	full := filepath.Join(root, path)
	text, err := os.ReadFile(full)
	if err == nil {
		var changed string
		if changed, err = change(string(text)); err == nil {
			err = os.WriteFile(full, []byte(changed), 0o644)
		}
	}
	if err != nil {
		return fmt.Errorf("adapt the image's /%s: %w", path, err)
	}
	return nil
}

// letScoresBe lets containers have the score of containerd where they want a lower one: that takes CAP_SYS_RESOURCE on
// the machine. containerd 1.6 takes a plugin's section from one file alone.
func letScoresBe(config string) (string, error) {
	const section = `[plugins."io.containerd.grpc.v1.cri"]` + "\n"
	before, after, ok := strings.Cut(config, section)
	if !ok {
		return "", fmt.Errorf("it has no section %s", strings.TrimSpace(section))
	}
	return before + section + "  restrict_oom_score_adj = true\n" + after, nil
}

// withoutDeviceUnit takes away what waits for the data disk's device unit, which systemd makes of what udev says. The
// link below /dev/disk/by-id, which udev's rule makes on Google, is there from the start (mountDevices): udev cannot
// run here, because it would see to the devices of the whole machine, and the disk is a loop device, which no rule of
// Google's names. The baked image's rules are tried in QEMU. An empty BindsTo= in another file would not undo the one
// here.
func withoutDeviceUnit(unit string) (string, error) {
	var b strings.Builder
	for line := range strings.Lines(unit) {
		if !strings.Contains(line, ".device") {
			b.WriteString(line)
		}
	}
	if b.Len() == len(unit) {
		return "", errors.New("it waits for no device")
	}
	return b.String(), nil
}
