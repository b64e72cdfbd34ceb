package main

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/internal/localgce"
)

// clusterAttribute is the instance attribute from which an agent reads its Cluster document.
const clusterAttribute = "quorate-cluster"

// upFlags are the flags of `up`.
type upFlags struct {
	vms, binds                       []string
	cluster, subnet, agent, diskSize string
	kind, image                      string
	masked                           []string
	watchdog                         time.Duration
	reflink, prompt                  bool
}

func (f *upFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.vms, "vm", nil, "a VM, NAME@ZONE or NAME@ZONE@ADDRESS; once for each")
	flags.StringVar(&f.cluster, "cluster", "",
		"the file with the Cluster document, attribute "+clusterAttribute+" of each VM")
	flags.StringArrayVar(&f.binds, "bind", nil, "a file or folder of this machine to show to each VM, HOST:GUEST[:ro]")
	flags.StringVar(&f.subnet, "subnet", "10.240.0.0/24", "the VMs' address range")
	flags.StringVar(&f.kind, "kind", string(localgce.ProcessVMs),
		"what the VMs are: process, with localgce's own pid 1 "+
			"on this machine's tree; or systemd, which boots the image's tree")
	flags.StringVar(&f.image, "image", "bin/image/root.tar", "the tree from which systemd VMs boot (make image)")
	flags.StringArrayVar(&f.masked, "mask", nil, "a unit of the image that systemd VMs do without; once for each")
	flags.StringVar(&f.agent, "agent", "", "the command that each VM keeps running: /usr/local/bin/quorate agent, or "+
		"what the image says")
	flags.DurationVar(&f.watchdog, "watchdog", 0, "the agent's WatchdogSec: none, or what the image says")
	flags.StringVar(&f.diskSize, "disk-size", "4GiB", "the size of a new data disk (sparse)")
	flags.BoolVar(&f.prompt, "prompt", false, "let the Compute API and the bucket answer at once, not in the time that "+
		"Google's take")
	flags.BoolVar(&f.reflink, "reflink", false, "keep the data disks where a file is copied at one instant: in an "+
		"XFS of the project's own, if need be")
}

// config makes the project's configuration of the flags. Every error is one of usage.
func (f *upFlags) config(state string) (conf localgce.Config, err error) {
	defer func() {
		if err != nil {
			err = &usageError{err}
		}
	}()
	conf = localgce.Config{
		State: state, Reflink: f.reflink, Agent: localgce.Agent{Command: strings.Fields(f.agent), Watchdog: f.watchdog},
		Prompt: f.prompt,
	}
	conf.Kind, conf.Masked = localgce.Kind(f.kind), f.masked
	if conf.Kind == localgce.SystemdVMs {
		if err := conf.BootImage(f.image); err != nil {
			return conf, err
		}
	}
	if conf.Subnet, err = netip.ParsePrefix(f.subnet); err != nil {
		return conf, fmt.Errorf("--subnet %q: a range such as 10.240.0.0/24 is needed", f.subnet)
	}
	if conf.DiskSize, err = localgce.ParseSize(f.diskSize); err != nil {
		return conf, fmt.Errorf("--disk-size %w", err)
	}
	if conf.VMs, err = parseVMs(f.vms); err != nil {
		return conf, err
	}
	if conf.Binds, err = parseBinds(f.binds); err != nil {
		return conf, err
	}
	return conf, f.applyCluster(&conf)
}

// applyCluster takes in the Cluster document: as it is, but for the two fields that the project itself needs. The
// document is the agent's to judge.
func (f *upFlags) applyCluster(conf *localgce.Config) (err error) {
	var document struct {
		Name     string `yaml:"name"`
		Endpoint struct {
			ExternalIP string `yaml:"externalIP"`
			InternalIP string `yaml:"internalIP"`
		} `yaml:"endpoint"`
	}
	if f.cluster != "" {
		text, err := os.ReadFile(f.cluster)
		if err != nil {
			return fmt.Errorf("--cluster: %w", err)
		}
		conf.Attributes = map[string]string{clusterAttribute: string(text)}
		_ = yaml.Unmarshal(text, &document) // tests hand broken documents to agents
		conf.Cluster = document.Name
	}
	for _, address := range []string{document.Endpoint.ExternalIP, document.Endpoint.InternalIP} {
		if address != "" {
			conf.Endpoint, err = localgce.ParseAddress(address)
			return err
		}
	}
	return nil
}

// parseVMs reads the flags --vm.
func parseVMs(flags []string) (list []localgce.VMConfig, err error) {
	for _, v := range flags {
		c, err := parseVM(v)
		if err != nil {
			return nil, fmt.Errorf("--vm %w", err)
		}
		list = append(list, c)
	}
	return list, nil
}

// parseVM reads NAME@ZONE or NAME@ZONE@ADDRESS.
func parseVM(v string) (c localgce.VMConfig, err error) {
	parts := strings.Split(v, "@")
	if len(parts) < 2 || len(parts) > 3 {
		return c, fmt.Errorf("%q: NAME@ZONE or NAME@ZONE@ADDRESS is needed", v)
	}
	c.Name, c.Zone = parts[0], parts[1]
	if len(parts) == 3 {
		if c.Address, err = localgce.ParseAddress(parts[2]); err != nil {
			return c, fmt.Errorf("%q: %w", v, err)
		}
	}
	return c, nil
}

func parseBinds(flags []string) (list []localgce.Bind, err error) {
	for _, b := range flags {
		parts := strings.Split(b, ":")
		if len(parts) < 2 || len(parts) > 3 || len(parts) == 3 && parts[2] != "ro" {
			return nil, fmt.Errorf("--bind %q: HOST:GUEST or HOST:GUEST:ro is needed", b)
		}
		host, err := filepath.Abs(parts[0])
		if err == nil {
			_, err = os.Stat(host)
		}
		if err != nil {
			return nil, fmt.Errorf("--bind %q: %w", b, err)
		}
		list = append(list, localgce.Bind{Host: host, Guest: parts[1], ReadOnly: len(parts) == 3})
	}
	return list, nil
}
