package controlplane

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// The ports of the components on loopback. They are upstream's own.
const (
	controllerManagerPort = 10257
	schedulerPort         = 10259
	autoscalerPort        = 8085
)

// stopTimeout is enough for all components but the apiserver: kube-controller-manager and cluster-autoscaler exit at
// once, kube-scheduler when it has released its lease.
const stopTimeout = 10 * time.Second

// A master that is short of memory or processors keeps the agent and etcd: the other replicas need that member, and its
// start takes longest. The unit gives the agent an oom_score_adj of -998, between the kubelet's and containerd's -999
// and the -997 of critical static pods, and etcd inherits it. The kernel kills what has the most memory, and counts
// each point as a thousandth of the machine's:
//   - The apiserver, at -498, is killed before etcd, unless etcd has half of the machine's memory more than it has.
//     With more than half of that memory it is killed before the machine's small programs: at -997, as critical static
//     pods are, all of those would be killed first, and free nothing.
//   - The others, at -398, are killed before an apiserver of their size: it serves more than them, and on two of three
//     replicas they are spares.
//
// At 5 steps of niceness the apiserver has a quarter of a processor that etcd wants as well, however many threads it
// has: where the unit has the cpu controller, their cgroups' weights say the same as the niceness.
const (
	apiServerOOMScore = 500
	componentOOMScore = 600
	nice              = 5
)

// Input is all that decides how the control plane of one replica runs.
type Input struct {
	Identity replica.Identity
	// Cluster has been defaulted and validated.
	Cluster *replica.Cluster
	// Files says where certs keeps leaves, authorities, kubeconfigs and keys.
	Files certs.Files
	// OtherEtcd are client URLs of other replicas' members, best first; the first two are used, behind the local
	// member, which needs no mention. A learner needs the voter's here, since it answers no linearizable read itself.
	// For a voter it has a price: etcd's client spreads requests over all members that it is connected to, whatever
	// their order, and one whose machine dies without a word is noticed by TCP_USER_TIMEOUT alone. Measured with one
	// other member and its link cut: writes hung for 10.3 s and failed; with none, nothing was noticed (7 s for those
	// in flight if it led). What it buys a voter is a start while the local client port is up to 7 s late.
	OtherEtcd []string
	// Encryption is the EncryptionConfiguration (certs.EncryptionConfig). It holds keys.
	Encryption []byte
	// Signing says that the authority's key is at hand (Files.CASigner, Files.CASignerKey). Without it the
	// controller-manager runs and signs nothing, which is how a replica comes up while the bundle cannot be opened;
	// with Signing and no file it would not start its controllers at all. Ask again with true once the files are there.
	Signing bool
	// Self is this program, which the add-on manager runs too.
	Self string
	// Accounts are the users that components run as, by the components' names; those without one run as the agent does.
	Accounts map[string]supervisor.Account
	// LogDir takes the audit log. RunDir takes the Files that Components returns; it is on a tmpfs, since they hold
	// keys.
	LogDir, RunDir string
}

// Components returns the processes of the control plane in the order of their start, and the files that must be written
// before they start. An error is a fault of the configuration, every one at once, or of the replica's addresses.
func Components(in Input) ([]supervisor.Spec, []File, error) {
	if err := Validate(in.Cluster); err != nil {
		return nil, nil, err
	}
	address, err := in.advertised()
	if err != nil {
		return nil, nil, err
	}
	files, policy, err := in.configFiles()
	if err != nil {
		return nil, nil, err
	}
	specs := []supervisor.Spec{in.apiServer(address, policy)}
	for _, known := range []struct {
		name  string
		build func() supervisor.Spec
	}{
		{replica.Scheduler, in.scheduler},
		{replica.ControllerManager, in.controllerManager},
		{replica.Autoscaler, in.autoscaler},
	} {
		if enabled(in.Cluster, known.name) {
			specs = append(specs, known.build())
		}
	}
	if in.Cluster.Addons.On() {
		specs = append(specs, in.addons())
		files = append(files, in.addonsFiles()...)
	}
	for _, name := range slices.Sorted(maps.Keys(in.Cluster.Components)) {
		if !replica.Known(name) && enabled(in.Cluster, name) {
			specs = append(specs, in.declared(name))
		}
	}
	return specs, files, nil
}

// enabled reports whether the defaulted configuration runs the component.
func enabled(c *replica.Cluster, name string) bool {
	on := c.Components[name].Enabled
	return on != nil && *on
}

// declared is a process of the operator's own, that quorate knows nothing of: its arguments are the configuration's
// alone.
func (in Input) declared(name string) supervisor.Spec {
	s := in.spec(name, nil)
	s.Args = slices.Clone(in.Cluster.Components[name].ExtraArgs)
	if p := in.Cluster.Components[name].Probe; p != nil {
		check := supervisor.HTTPGet(loopbackClient(), p.URL, nil)
		s.Start, s.Live = startProbe(check), liveProbe(check)
	}
	return s
}

// spec is what all components have in common; all but the apiserver need the apiserver.
func (in Input) spec(name string, own flags) supervisor.Spec {
	c := in.Cluster.Components[name]
	s := supervisor.Spec{
		Name:        name,
		Path:        c.Binary,
		Args:        own.with(c.ExtraArgs),
		Env:         environment(c.Env),
		StopTimeout: stopTimeout,
		OOMScore:    apiServerOOMScore,
		Nice:        nice,
		Limits: supervisor.Limits{MemoryMax: c.Resources.MemoryMaxBytes, MemoryHigh: c.Resources.MemoryHighBytes,
			CPUWeight: c.Resources.CPUWeight},
	}
	if account, ok := in.Accounts[name]; ok {
		s.RunAs = &account
	}
	if name != replica.APIServer {
		s.After, s.OOMScore = []string{replica.APIServer}, componentOOMScore
	}
	return s
}

// environment spells the configuration's map in a stable order.
func environment(m map[string]string) []string {
	var env []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		env = append(env, k+"="+m[k])
	}
	return env
}

// loopbackURL is where a component answers on the replica itself.
func loopbackURL(scheme string, port int, path string) string {
	return fmt.Sprintf("%s://127.0.0.1:%d%s", scheme, port, path)
}
