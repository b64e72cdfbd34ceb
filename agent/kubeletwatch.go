package agent

import (
	"path/filepath"

	"github.com/quorate/quorate/agent/kubelet"
)

// newKubeletKeeper watches the kubelet as the document says. Each unit that kubelet watches has waits of its own.
func (a *Agent) newKubeletKeeper() *kubelet.Keeper {
	runtime, own := a.tracker.Source("runtime", "phase", 0), a.tracker.Source("kubelet", "phase", 0)
	return kubelet.NewKeeper(kubelet.Config{
		Log: a.cfg.Log,
		APIServer: func() bool {
			ready, _ := apiServerReady(a.supervisor)
			return ready
		},
		StatePath:    filepath.Join(a.cfg.RunDir, "kubelet.json"),
		KubeletWaits: own, RuntimeWaits: runtime, Tell: a.nodeEvents.TellUnit,
	}, a.waits, a.cfg.OpenNode)
}
