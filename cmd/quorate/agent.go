package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/internal/asynclog"
	"github.com/quorate/quorate/internal/cri"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/localroute"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
	"github.com/quorate/quorate/systemd"
)

// The places of a master's own files. They are the image's, so there is nothing to choose.
const (
	runDir    = "/run/quorate"
	logDir    = "/var/log/quorate"
	bakedFile = "/etc/quorate/cluster.yaml"
	hostsFile = "/etc/hosts"
	// diskMount is where the image mounts the data disk whose device name its units give the agent in diskVariable. A
	// flag would be lost where an operator's drop-in replaces the command.
	diskMount, diskVariable = "/var/lib/quorate", "QUORATE_DATA_DISK"
	diskUnit                = "var-lib-quorate.mount"
	agentUnit               = "quorate.service"
	// metricsAddress is next to the scheduler's and the controller-manager's, on loopback as etcd's.
	metricsAddress = "127.0.0.1:10270"
)

func newAgent() *cobra.Command {
	var logs, run string
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Boot this master and keep it running (what systemd starts)",
		Long: `Boot this master and keep it running.

It reads who it is and which cluster it belongs to from the metadata server, takes its place in etcd, runs the control plane,
and stays. It needs no argument: systemd's ` + agentUnit + ` starts it. SIGTERM stops everything in reverse order,
and SIGHUP does the same. The image sets ` + diskVariable + ` to the device name of the disk that it mounts at
` + diskMount + `: without that disk nothing is started, also where the document does not name it.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := openAgentLog()
			if !cmd.Flags().Changed("log-dir") && supervisor.HasJournal() {
				logs = ""
			}
			return endLog(log, onlyAgent(cmd.Context(), log, run, logs))
		},
	}
	cmd.Flags().StringVar(&logs, "log-dir", logDir,
		`where the components' logs go; "" is the journal, which is taken where there is one and nothing is given`)
	addRunDir(cmd, &run)
	return cmd
}

// addRunDir adds the flag by which the agent and those who ask it find each other. There is nothing to choose on a
// master.
func addRunDir(cmd *cobra.Command, run *string) {
	cmd.Flags().StringVar(run, "run-dir", runDir, "the agent's folder, on a tmpfs: its socket, and what is true of "+
		"this boot alone")
	cobra.CheckErr(cmd.Flags().MarkHidden("run-dir"))
}

// onlyAgent runs the agent, unless this machine has one.
func onlyAgent(ctx context.Context, log *asynclog.Log, run, logs string) error {
	if err := requireRoot("the agent"); err != nil {
		return err
	}
	release, err := beTheOnlyAgent(run)
	if err != nil {
		return err
	}
	defer release()
	err = runAgent(ctx, log, run, logs)
	writeLastEnd(run, err, time.Now())
	return err
}

func runAgent(ctx context.Context, async *asynclog.Log, run, logs string) error {
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
	debug.SetGCPercent(agentGCPercent)
	notifier := systemd.NewNotifier(env, log)
	watchdog := systemd.NewWatchdog(notifier, log, systemd.Check{Name: "agent", Run: alive(agent.SocketPath(run))})
	metadata := gce.NewMetadata(gce.MetadataConfig{Log: log})
	cfg := agent.Config{
		Log: log, LogLoss: logLoss(async),
		Metadata: metadata, Open: cloudOpener(metadata), Notify: leanNotifier{notifier, log},
		LocalRoutes: localroute.Table{}, Account: systemAccount,
		Baked: bakedFile, RunDir: filepath.Clean(run), LogDir: logs, AuditDir: cmp.Or(logs, logDir),
		ImageDisk: agent.ImageDisk{Device: os.Getenv(diskVariable), Dir: diskMount, Unit: diskUnit},
		HostsFile: hostsFile, MetricsAddress: metricsAddress,
		Self: self, Version: currentVersions().Quorate, Env: os.Environ(), Cgroup: cgroup, AtStep: atStep(run),
		SaveSnapshot: saverChild(log, self, filepath.Clean(run)), AddonRules: addonRules(log, self),
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
func nodeUnits(k replica.Kubelet) agent.NodeUnits {
	units := systemd.NewUnits(k.Unit, k.RuntimeUnit)
	return agent.NodeUnits{Units: units, Runtime: cri.Runtime{Socket: k.RuntimeSocket}, Clock: systemd.Monotonic,
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
