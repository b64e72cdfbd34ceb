// Package accounts says which processes run as users of their own, and whose the files are that they read.
//
// Guarantees: a process that needs no more of the machine than its files runs as the user of its name, where the system
// has one, and reads nothing that another one needs: no private key is readable by two, but for the one with which two
// sign. What is handed over to a process stays in its folder: links are not followed.
//
// The agent itself stays root: it mounts nothing and loads nothing, but it hands files over, starts processes as others
// and makes routes. It makes no users: the image does.
package accounts

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// Etcd is the name of the process in which the member runs.
const Etcd = "etcd"

// confined are the processes that need no more of the machine than their files. Each runs as the user of its name,
// where the system has one, and so does a component that the document declares. The rest runs as the agent does.
var confined = []string{Etcd, replica.APIServer, replica.Scheduler, replica.ControllerManager, replica.Autoscaler,
	replica.AddonManager}

// passable is the mode of folders in which others have files: their names are the agent's business.
const passable fs.FileMode = 0o711

// Lookup is the user of a name, if the system has one.
type Lookup func(name string) (supervisor.Account, bool)

// Accounts are whom processes run as, by their names.
type Accounts struct {
	lookup Lookup
	found  map[string]supervisor.Account
}

// Find asks the system for the users, once. One line says what runs as root for want of one. lookup may be nil: the
// system has none.
func Find(log *slog.Logger, lookup Lookup) *Accounts {
	if lookup == nil {
		lookup = func(string) (supervisor.Account, bool) { return supervisor.Account{}, false }
	}
	a := &Accounts{lookup: lookup, found: map[string]supervisor.Account{}}
	var missing []string
	for _, name := range confined {
		account, ok := lookup(name)
		if !ok {
			missing = append(missing, name)
			continue
		}
		a.found[name] = account
	}
	if len(missing) > 0 {
		log.Info("processes run as root: the system has no users of their names", "names", strings.Join(missing, " "))
	}
	return a
}

// Of is whom the process of a name runs as; nil: as the agent.
func (a *Accounts) Of(name string) *supervisor.Account {
	if account, ok := a.found[name]; ok {
		return &account
	}
	return nil
}

// For adds the users of the components that the document declares. What such a one reads is the operator's
// business, and so is whether the system has a user of its name.
func (a *Accounts) For(c *replica.Cluster) map[string]supervisor.Account {
	all := maps.Clone(a.found)
	for name := range c.Components {
		if replica.Known(name) {
			continue
		}
		if account, ok := a.lookup(name); ok {
			all[name] = account
		}
	}
	return all
}

// Owners are whose the files are that certs makes.
func (a *Accounts) Owners(f certs.Files) map[string]certs.Owner {
	out := map[string]certs.Owner{}
	for name, paths := range map[string][]string{
		Etcd: {f.Leaf(certs.EtcdServer), f.Leaf(certs.EtcdPeerLeaf)},
		replica.APIServer: {f.Leaf(certs.APIServer), f.Leaf(certs.APIServerEtcd), f.Leaf(certs.APIServerKubelet),
			f.Leaf(certs.FrontProxyClient), f.ServiceAccountKey()},
		replica.Scheduler: {f.Leaf(certs.Scheduler), f.Kubeconfig(certs.Scheduler), f.Leaf(certs.SchedulerServing)},
		replica.ControllerManager: {f.Leaf(certs.ControllerManager), f.Kubeconfig(certs.ControllerManager),
			f.Leaf(certs.ControllerManagerServing), f.CASignerKey(certs.Kubernetes)},
		replica.Autoscaler:   {f.Leaf(certs.Autoscaler), f.Kubeconfig(certs.Autoscaler)},
		replica.AddonManager: {f.Leaf(certs.Addons), f.Kubeconfig(certs.Addons)},
	} {
		if account, ok := a.found[name]; ok {
			for _, path := range paths {
				out[path] = certs.Owner{Owner: ownerOf(account)}
			}
		}
	}
	// Two read this one: the apiserver signs tokens with it, and so does the controller-manager.
	if signer, ok := a.found[replica.ControllerManager]; ok {
		owner := out[f.ServiceAccountKey()] // root, where the apiserver has no user
		owner.GID, owner.GroupReads = int(signer.GID), true
		out[f.ServiceAccountKey()] = owner
	}
	return out
}

func ownerOf(account supervisor.Account) durable.Owner {
	return durable.Owner{UID: int(account.UID), GID: int(account.GID)}
}

// OwnerOf is whose the files are that the process of a name reads; nil: they stay the agent's.
func (a *Accounts) OwnerOf(name string) *durable.Owner {
	account := a.Of(name)
	if account == nil {
		return nil
	}
	owner := ownerOf(*account)
	return &owner
}

// OpenFolders lets those who are not root pass to their files.
func (a *Accounts) OpenFolders(dirs ...string) error {
	if len(a.found) == 0 {
		return nil
	}
	for _, dir := range dirs {
		if err := errors.Join(os.MkdirAll(dir, passable), os.Chmod(dir, passable)); err != nil {
			return fmt.Errorf("let processes pass to their files: %w", err)
		}
	}
	return nil
}

// Give hands a folder over to the process of a name, with all that is in it, and follows no link. One that runs as the
// agent does gets nothing.
func (a *Accounts) Give(name, dir string) error {
	if account := a.Of(name); account != nil {
		return GiveTree(dir, *account)
	}
	return nil
}

// GiveTree hands a folder over with all that is in it, and follows no link.
func GiveTree(dir string, account supervisor.Account) error {
	owner := ownerOf(account)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) == owner.UID && int(st.Gid) == owner.GID {
			return nil
		}
		return os.Lchown(path, owner.UID, owner.GID)
	})
	if err != nil {
		return fmt.Errorf("hand %s over to its process: %w", dir, err)
	}
	return nil
}
