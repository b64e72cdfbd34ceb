package localgce

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
)

// names are all names that a project takes on the machine, made of a hash of its state folder and nothing else: whoever
// knows the folder can find and remove what a dead project left behind.
type names struct{ state, hash string }

// namesFor takes the state folder's absolute path.
func namesFor(state string) names {
	sum := sha256.Sum256([]byte(state))
	return names{state: state, hash: hex.EncodeToString(sum[:3])}
}

// fabric is the network namespace of the bridge, and the cgroup above the VMs'.
func (n names) fabric() string { return "lgce-" + n.hash }

// vm is the network namespace of the VM in a slot.
func (n names) vm(slot string) string { return n.fabric() + "-" + slot }

// owns says whether a network namespace is the project's.
func (n names) owns(namespace string) bool {
	return namespace == n.fabric() || strings.HasPrefix(namespace, n.fabric()+"-")
}

// hostLink is the host's end of the link to the fabric: 10 characters, of the kernel's 15.
func (n names) hostLink() string { return "lgce" + n.hash }

func (n names) disks() string                { return filepath.Join(n.state, "disks") }
func (n names) diskFile(file string) string  { return filepath.Join(n.disks(), file) }
func (n names) logs() string                 { return filepath.Join(n.state, "logs") }
func (n names) vmLog(vm string) string       { return filepath.Join(n.logs(), vm+".log") }
func (n names) vmLogFolder(vm string) string { return filepath.Join(n.logs(), vm) }
func (n names) scratch(slot string) string   { return filepath.Join(n.state, "mnt", slot) }
func (n names) stateFile() string            { return filepath.Join(n.state, "state.json") }
func (n names) lockFile() string             { return "/run/" + n.fabric() + ".lock" }

// LogPath is the file with what the init and the agent of a VM print. It stays when the project is down. In the same
// folder, the folder of the VM's name is the VM's /var/log/quorate.
func LogPath(state, vm string) (string, error) {
	abs, err := filepath.Abs(state)
	if err != nil {
		return "", fmt.Errorf("state folder %s: %w", state, err)
	}
	return namesFor(abs).vmLog(vm), nil
}
