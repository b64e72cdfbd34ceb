// Package kubeconfig puts a cluster next to those that a person has, in the file that kubectl reads.
package kubeconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/internal/durable"
)

// Personal is the file that kubectl would change: the first of KUBECONFIG that exists, else its first, else
// ~/.kube/config. A link is followed: what it points to is replaced.
func Personal() (string, error) {
	var files []string
	for _, file := range filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)) {
		if file != "" {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fault.File("find ~/.kube/config: %w", err)
		}
		files = []string{filepath.Join(home, ".kube", "config")}
	}
	for _, file := range files {
		if real, err := filepath.EvalSymlinks(file); err == nil {
			return real, nil
		}
	}
	return files[0], nil
}

// Merged is what became of a person's kubeconfig.
type Merged struct {
	file, context, former string // former is the current context before
	used                  bool
}

// Merge puts the cluster of an issued kubeconfig into a file, as cluster, user and context of one name. All
// else in the file stays; another cluster of that name is replaced only by force. use makes it the current context.
func Merge(file, name string, issued []byte, use, force bool) (m Merged, err error) {
	from, err := clientcmd.Load(issued)
	if err != nil {
		return m, err
	}
	own := from.Contexts[from.CurrentContext]
	cluster, user := from.Clusters[own.Cluster], from.AuthInfos[own.AuthInfo]
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return m, fault.AtFile(err)
	}
	unlock, err := lock(file)
	if err != nil {
		return m, err
	}
	defer unlock()
	c := clientcmdapi.NewConfig()
	switch text, err := os.ReadFile(file); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return m, fault.File("merge the kubeconfig: %w", err)
	default:
		if c, err = clientcmd.Load(text); err != nil {
			return m, fault.File("merge the kubeconfig: read %s: %w; nothing was changed", file, err)
		}
	}
	if was := c.Clusters[name]; was != nil && !force &&
		!bytes.Equal(was.CertificateAuthorityData, cluster.CertificateAuthorityData) {
		return m, fault.File("merge the kubeconfig: %s has another cluster %q already, at %s: --force replaces it; "+
			"nothing was changed", file, name, was.Server)
	}
	m = Merged{file: file, context: name, former: c.CurrentContext, used: use}
	c.Clusters[name], c.AuthInfos[name] = cluster, user
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	if use {
		c.CurrentContext = name
	}
	text, err := clientcmd.Write(*c)
	if err != nil {
		return m, err
	}
	return m, fault.AtFile(durable.WriteFile(file, text, 0o600))
}

// lock takes the lock that kubectl takes while it changes the file.
func lock(file string) (unlock func(), err error) {
	lock, err := os.OpenFile(file+".lock", os.O_CREATE|os.O_EXCL, 0)
	if errors.Is(err, fs.ErrExist) {
		return nil, fault.File("merge the kubeconfig: somebody changes %s now: %s.lock is there; nothing was changed",
			file, file)
	}
	if err != nil {
		return nil, fault.File("merge the kubeconfig: %w", err)
	}
	lock.Close()
	return func() { os.Remove(file + ".lock") }, nil
}

// Say tells how the context is used, and how it is taken back.
func (m Merged) Say(w io.Writer) {
	fmt.Fprintf(w, "%s has the context %s.\n", m.file, m.context)
	back := ""
	switch {
	case !m.used:
		fmt.Fprintf(w, "To use it: kubectl --context %s get nodes\n", cluster.Quoted(m.context))
	case m.former != "" && m.former != m.context:
		fmt.Fprintf(w, "It is the current one now, in place of %s.\n", m.former)
		back = "kubectl config use-context " + cluster.Quoted(m.former) + "; "
	default:
		fmt.Fprintln(w, "It is the current one.")
	}
	fmt.Fprintf(w, "To take it back: %skubectl config delete-context %[2]s; kubectl config delete-cluster %[2]s; "+
		"kubectl config delete-user %[2]s\n", back, cluster.Quoted(m.context))
}
