// Package names is what a project calls what it has on the machine, and the lock on these names.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
)

// Names are all names that a project takes on the machine, made of a hash of its state folder and nothing else: whoever
// knows the folder can find and remove what a dead project left behind.
type Names struct{ State, hash string }

// For takes the state folder's absolute path.
func For(state string) Names {
	sum := sha256.Sum256([]byte(state))
	return Names{State: state, hash: hex.EncodeToString(sum[:3])}
}

// Fabric is the network namespace of the bridge, and the cgroup above the VMs'.
func (n Names) Fabric() string { return "lgce-" + n.hash }

// VM is the network namespace of the VM in a slot.
func (n Names) VM(slot string) string { return n.Fabric() + "-" + slot }

// Owns says whether a network namespace is the project's.
func (n Names) Owns(namespace string) bool {
	return namespace == n.Fabric() || strings.HasPrefix(namespace, n.Fabric()+"-")
}

// HostLink is the host's end of the link to the fabric: 10 characters, of the kernel's 15.
func (n Names) HostLink() string { return "lgce" + n.hash }

// Disks is the folder of the data disks.
func (n Names) Disks() string { return filepath.Join(n.State, "disks") }

func (n Names) logs() string { return filepath.Join(n.State, "logs") }

// VMLog is the file with what the init and the agent of a VM print.
func (n Names) VMLog(vm string) string { return filepath.Join(n.logs(), vm+".log") }

// VMLogFolder is the VM's /var/log/quorate.
func (n Names) VMLogFolder(vm string) string { return filepath.Join(n.logs(), vm) }

// Scratch is an empty folder for what is mounted for a slot.
func (n Names) Scratch(slot string) string { return filepath.Join(n.State, "mnt", slot) }

// StateFile is state.json.
func (n Names) StateFile() string { return filepath.Join(n.State, "state.json") }

// LockFile is not in the state folder, so that the owner is found even where someone has removed that.
func (n Names) LockFile() string { return "/run/" + n.Fabric() + ".lock" }
