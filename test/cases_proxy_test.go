package test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
)

// An HTTP proxy in the agent's environment is for Google's services and for nothing else. The one here takes no
// connection: what went through it between members, to loopback or to the metadata server would fail.
func TestCaseAProxyIsNotForPeers(t *testing.T) {
	t.Parallel()
	const nobody = "http://127.0.0.1:9"
	env := []string{"HTTP_PROXY=" + nobody, "HTTPS_PROXY=" + nobody, "ALL_PROXY=" + nobody, "http_proxy=" + nobody,
		"https_proxy=" + nobody}
	c := bare(t, plan{vms: []string{"master-a", "master-b", "master-c"}, agent: localgce.Agent{
		Command: []string{"/usr/local/bin/quorate", "agent"}, Env: env, Watchdog: 30 * time.Second}})
	await(t, "three members behind a proxy that is away", c.membersWhole)
	vm := c.leader(t)
	c.must(t, c.KillVM(t.Context(), vm))
	c.must(t, c.StartVM(t.Context(), vm))
	await(t, vm+" is back", c.membersWhole)
}
