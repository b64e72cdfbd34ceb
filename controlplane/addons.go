package controlplane

import (
	"context"
	"net"
	"net/http"
	"path/filepath"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// AddonsSocket is where the add-on manager answers, in a folder of its own below that of the agent's sockets.
func AddonsSocket(runDir string) string { return filepath.Join(runDir, "addons", "addons.sock") }

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
			"addons", "run", "--folder=" + in.Cluster.Addons.Folder, "--socket=" + socket,
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
