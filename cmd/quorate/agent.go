package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/agent/datadisk"
	"github.com/quorate/quorate/agent/kubelet"
	"github.com/quorate/quorate/cmd/quorate/addonset"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/master"
	"github.com/quorate/quorate/cmd/quorate/version"
	"github.com/quorate/quorate/internal/asynclog"
	"github.com/quorate/quorate/internal/cri"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/lastwords"
	"github.com/quorate/quorate/internal/local"
	"github.com/quorate/quorate/internal/localroute"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
	"github.com/quorate/quorate/systemd"
)

func newAgent() *cobra.Command {
	var logs, run string
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Boot this master and keep it running (what systemd starts)",
		Long: `Boot this master and keep it running.

It reads who it is and which cluster it belongs to from the metadata server, takes its place in etcd, runs the control plane,
and stays. It needs no argument: systemd's ` + master.AgentUnit + ` starts it. SIGTERM stops everything in reverse order,
and SIGHUP does the same. The image sets ` + master.DiskVariable + ` to the device name of the disk that it mounts at
` + master.DiskMount + `: without that disk nothing is started, also where the document does not name it.`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			words := lastwords.New()
			log := openAgentLog(words)
			if !cmd.Flags().Changed("log-dir") && supervisor.HasJournal() {
				logs = ""
			}
			return endLog(log, words, onlyAgent(cmd.Context(), log, words, run, logs))
		},
	}
	cmd.Flags().StringVar(&logs, "log-dir", master.LogDir,
		`where the components' logs go; "" is the journal, which is taken where there is one and nothing is given`)
	master.AddRunDir(cmd, &run)
	return cmd
}

// onlyAgent runs the agent, unless this machine has one.
func onlyAgent(ctx context.Context, log *asynclog.Log, words *lastwords.Keeper, run, logs string) error {
	if err := fault.RequireRoot("the agent"); err != nil {
		return err
	}
	release, err := beTheOnlyAgent(run)
	if err != nil {
		return err
	}
	defer release()
	err = runAgent(ctx, log, words, run, logs)
	master.WriteLastEnd(run, err, exitCode(err), time.Now())
	return err
}

func runAgent(ctx context.Context, async *asynclog.Log, words *lastwords.Keeper, run, logs string) error {
	log := async.Logger
	env, err := systemd.TakeEnvironment()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cgroup := ownCgroup(log)
	beLean()
	notifier := systemd.NewNotifier(env, log)
	watchdog := systemd.NewWatchdog(notifier, log, systemd.Check{Name: "agent", Run: alive(agent.SocketPath(run))})
	metadata := gce.NewMetadata(gce.MetadataConfig{Log: log})
	cfg := agent.Config{
		Log: log, LogLoss: logLoss(async), LastWords: words,
		Metadata: metadata, Open: cloudOpener(metadata), Notify: leanNotifier{notifier, log},
		LocalRoutes: localroute.Table{}, Account: systemAccount,
		Baked: master.BakedFile, RunDir: filepath.Clean(run), LogDir: logs, AuditDir: cmp.Or(logs, master.LogDir),
		ImageDisk: datadisk.Image{Device: os.Getenv(master.DiskVariable), Dir: master.DiskMount,
			Unit: master.DiskUnit}, HostsFile: master.HostsFile, MetricsAddress: master.MetricsAddress,
		Self: self, Version: version.Current().Quorate, Env: os.Environ(), Cgroup: cgroup, AtStep: atStep(run),
		SaveSnapshot: saverChild(log, self, filepath.Clean(run)), AddonRules: addonset.Rules(log, self, saveOOMScore),
	}
	if systemd.Runs() {
		cfg.OpenNode = nodeUnits
	}
	// The watchdog is fed until the agent has stopped everything, not until it was asked to.
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	var g errgroup.Group
	g.Go(func() error { return watchdog.Run(watching) })
	err = agent.Run(ctx, cfg)
	stopWatching()
	g.Wait() // it ends because it was asked to
	return err
}

// nodeUnits opens the units of a kubelet and its runtime.
func nodeUnits(k replica.Kubelet) kubelet.Node {
	units := systemd.NewUnits(k.Unit, k.RuntimeUnit)
	return kubelet.Node{Units: units, Runtime: cri.Runtime{Socket: k.RuntimeSocket}, Clock: systemd.Monotonic,
		Close: units.Close}
}

// listenPatience is how long the agent may take to listen for the watchdog's question. It takes some milliseconds.
const listenPatience = 10 * time.Second

// alive is the watchdog's check. The first ping may come before the agent listens: that nobody answers does not count
// at once.
func alive(socket string) func(context.Context) error {
	begin := time.Now()
	return func(ctx context.Context) error {
		err := agent.Alive(ctx, socket)
		if errors.Is(err, agent.ErrNoAgent) && time.Since(begin) < listenPatience {
			return nil
		}
		return err
	}
}

// ownCgroup is the cgroup that systemd has delegated to this unit, ready to be divided; empty where there is none. The
// log says what children can be limited in.
func ownCgroup(log *slog.Logger) string {
	dir, err := supervisor.DelegatedCgroup()
	if err != nil {
		log.Info("children run in process groups, without limits", "reason", err.Error())
		return ""
	}
	controllers, err := supervisor.PrepareCgroup(dir)
	if err != nil {
		log.Warn("children run in cgroups, and not all limits can be in force", "err", err.Error())
	}
	log.Info("children run in cgroups", "folder", dir, "controllers", cmp.Or(strings.Join(controllers, " "), "none"))
	return dir
}

// beTheOnlyAgent makes the agent's folder and takes its lock.
func beTheOnlyAgent(runDir string) (release func(), err error) {
	if err := os.MkdirAll(runDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the agent's folder: %w", err)
	}
	path := filepath.Join(runDir, "agent.lock")
	release, err = local.Lock(path)
	switch {
	case errors.Is(err, local.ErrLocked):
		return nil, fmt.Errorf("%w (it holds %s): 'quorate status' says how it is", errRunning, path)
	case err != nil:
		return nil, fmt.Errorf("lock the agent's folder: %w", err)
	}
	return release, nil
}

// systemAccount is the user of a name, as /etc/passwd has it. One that is root is none: it would confine nothing.
func systemAccount(name string) (supervisor.Account, bool) {
	u, err := user.Lookup(name)
	if err != nil {
		return supervisor.Account{}, false
	}
	uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
	return supervisor.Account{UID: uint32(uid), GID: uint32(gid)}, errUID == nil && errGID == nil && uid != 0
}
