package controlplane

import (
	"context"
	"net"
	"net/http"
	"path/filepath"

	"github.com/quorate/quorate/addons/examples"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// AddonsSocket is where the add-on manager answers, in a folder of its own below that of the agent's sockets.
func AddonsSocket(runDir string) string { return filepath.Join(runDir, "addons", "addons.sock") }

// AddonsFolder is the folder that the add-on manager keeps applied: the document's own, or the one that holds its
// examples. It is empty where there are no add-ons.
func AddonsFolder(c *replica.Cluster, runDir string) string {
	if len(c.Addons.Examples) > 0 {
		return filepath.Join(runDir, "examples")
	}
	return c.Addons.Folder
}

// addonsFiles are the document's examples as a folder. It is not the add-on manager's to write: by what is in it the
// agents decide what the manager may do.
func (in Input) addonsFiles() []File {
	if len(in.Cluster.Addons.Examples) == 0 {
		return nil
	}
	folder := AddonsFolder(in.Cluster, in.RunDir)
	return []File{
		{Path: filepath.Join(folder, "examples.yaml"), Data: examples.Set(in.Cluster), Public: true},
		{Path: filepath.Join(folder, "version"), Data: []byte(examples.Version(in.Cluster)), Public: true},
	}
}

// addons is the process of the add-on manager: this very program. Every replica runs one, and none is elected. It is
// asked whether its loop gets on: a process that is there and applies nothing would be no use.
func (in Input) addons() supervisor.Spec {
	socket := AddonsSocket(in.RunDir)
	client := &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 1,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	check := supervisor.HTTPGet(client, "http://local/alive", nil)
	s := supervisor.Spec{
		Name: replica.AddonManager,
		Path: in.Self,
		Args: []string{
			"addons", "run", "--folder=" + AddonsFolder(in.Cluster, in.RunDir), "--socket=" + socket,
			"--kubeconfig=" + in.Files.Kubeconfig(certs.Addons), "--replica=" + in.Identity.Name,
		},
		// It collects often and keeps little: what it reads of the cluster is needed for one comparison.
		Env:         []string{"GOGC=50"},
		After:       []string{replica.APIServer},
		Start:       startProbe(check),
		Live:        liveProbe(check),
		StopTimeout: stopTimeout,
		OOMScore:    componentOOMScore,
		Nice:        nice,
	}
	if account, ok := in.Accounts[replica.AddonManager]; ok {
		s.RunAs = &account
	}
	return s
}
