package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// This file says which processes run as users of their own, and whose the files are that they read. The agent stays
// root: it mounts nothing and loads nothing, but it hands files over, starts processes as others and makes routes.

// confined are the processes that need no more of the machine than their files. Each runs as the user of its name,
// where the system has one, and so does a component that the document declares. The rest runs as the agent does.
var confined = []string{etcdName, replica.APIServer, replica.Scheduler, replica.ControllerManager, replica.Autoscaler,
	replica.AddonManager}

// passable is the mode of folders in which others have files: their names are the agent's business.
const passable fs.FileMode = 0o711

// findAccounts asks the system for the users, once. One line says what runs as root for want of one.
func (a *Agent) findAccounts() {
	a.accounts = map[string]supervisor.Account{}
	var missing []string
	for _, name := range confined {
		account, ok := a.account(name)
		if !ok {
			missing = append(missing, name)
			continue
		}
		a.accounts[name] = account
	}
	if len(missing) > 0 {
		a.cfg.Log.Info("processes run as root: the system has no users of their names", "names",
			strings.Join(missing, " "))
	}
}

func (a *Agent) account(name string) (supervisor.Account, bool) {
	if a.cfg.Account == nil {
		return supervisor.Account{}, false
	}
	return a.cfg.Account(name)
}

// accountsFor adds the users of the components that the document declares. What such a one reads is the operator's
// business, and so is whether the system has a user of its name.
func (a *Agent) accountsFor(c *replica.Cluster) map[string]supervisor.Account {
	all := maps.Clone(a.accounts)
	for name := range c.Components {
		if replica.Known(name) {
			continue
		}
		if account, ok := a.account(name); ok {
			all[name] = account
		}
	}
	return all
}

// owners are whose the files are that certs makes.
func (a *Agent) owners() map[string]certs.Owner {
	f, out := a.files, map[string]certs.Owner{}
	for name, paths := range map[string][]string{
		etcdName: {f.Leaf(certs.EtcdServer), f.Leaf(certs.EtcdPeerLeaf)},
		replica.APIServer: {f.Leaf(certs.APIServer), f.Leaf(certs.APIServerEtcd), f.Leaf(certs.APIServerKubelet),
			f.Leaf(certs.FrontProxyClient), f.ServiceAccountKey()},
		replica.Scheduler: {f.Leaf(certs.Scheduler), f.Kubeconfig(certs.Scheduler), f.Leaf(certs.SchedulerServing)},
		replica.ControllerManager: {f.Leaf(certs.ControllerManager), f.Kubeconfig(certs.ControllerManager),
			f.Leaf(certs.ControllerManagerServing), f.CASignerKey(certs.Kubernetes)},
		replica.Autoscaler:   {f.Leaf(certs.Autoscaler), f.Kubeconfig(certs.Autoscaler)},
		replica.AddonManager: {f.Leaf(certs.Addons), f.Kubeconfig(certs.Addons)},
	} {
		if account, ok := a.accounts[name]; ok {
			for _, path := range paths {
				out[path] = certs.Owner{Owner: ownerOf(account)}
			}
		}
	}
	// Two read this one: the apiserver signs tokens with it, and so does the controller-manager.
	if signer, ok := a.accounts[replica.ControllerManager]; ok {
		owner := out[f.ServiceAccountKey()] // root, where the apiserver has no user
		owner.GID, owner.GroupReads = int(signer.GID), true
		out[f.ServiceAccountKey()] = owner
	}
	return out
}

func ownerOf(account supervisor.Account) durable.Owner {
	return durable.Owner{UID: int(account.UID), GID: int(account.GID)}
}

// apiServerOwner is whose the files are that the apiserver reads; nil: they stay the agent's.
func (a *Agent) apiServerOwner() *durable.Owner {
	account, ok := a.accounts[replica.APIServer]
	if !ok {
		return nil
	}
	owner := ownerOf(account)
	return &owner
}

// openFolders lets those who are not root pass to their files.
func (a *Agent) openFolders(dirs ...string) error {
	if len(a.accounts) == 0 {
		return nil
	}
	for _, dir := range dirs {
		if err := errors.Join(os.MkdirAll(dir, passable), os.Chmod(dir, passable)); err != nil {
			return fmt.Errorf("let processes pass to their files: %w", err)
		}
	}
	return nil
}

// auditDir is where the apiserver writes its audit log, and turns it over.
func (a *Agent) auditDir() string { return filepath.Join(a.cfg.AuditDir, "audit") }

// giveDirs makes the folders in which components write.
func (a *Agent) giveDirs() error { return errors.Join(a.giveAuditDir(), a.giveAddonsDir()) }

// giveAuditDir makes the folder of the audit log, the apiserver's own.
func (a *Agent) giveAuditDir() error {
	if err := a.openFolders(a.cfg.AuditDir); err != nil {
		return err
	}
	if err := os.MkdirAll(a.auditDir(), 0o700); err != nil {
		return fmt.Errorf("make the folder of the audit log: %w", err)
	}
	if account, ok := a.accounts[replica.APIServer]; ok {
		return giveTree(a.auditDir(), ownerOf(account))
	}
	return nil
}

// giveAddonsDir makes the folder in which the add-on manager answers, its own.
func (a *Agent) giveAddonsDir() error {
	dir := filepath.Dir(controlplane.AddonsSocket(a.cfg.RunDir))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the add-on manager's folder: %w", err)
	}
	if account, ok := a.accounts[replica.AddonManager]; ok {
		return giveTree(dir, ownerOf(account))
	}
	return nil
}

// giveMember hands over what the member's process writes: its directory, and its folder on the tmpfs. What the agent
// itself has put into them is handed over at the next start.
func giveMember(configPath string, account supervisor.Account) error {
	cfg, err := member.LoadConfig(configPath)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return fmt.Errorf("make etcd's directory: %w", err)
	}
	return errors.Join(giveTree(filepath.Dir(configPath), ownerOf(account)), giveTree(cfg.Dir, ownerOf(account)))
}

// giveTree hands a folder over with all that is in it, and follows no link.
func giveTree(dir string, owner durable.Owner) error {
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
