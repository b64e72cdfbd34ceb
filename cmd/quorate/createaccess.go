package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/kubeconfig"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/internal/replica"
)

// access is what create gives the person who runs it: a way in for kubectl.
type access struct {
	wanted, use bool
	lifetime    time.Duration
}

func (a *access) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.wanted, "kubeconfig", true, "at the end, put an administrator's kubeconfig into the file that "+
		"kubectl reads, under the cluster's name")
	cmd.Flags().BoolVar(&a.use, "use", false, "make it the current context")
	cmd.Flags().DurationVar(&a.lifetime, "lifetime", certs.AdminLifetime, "how long that kubeconfig is good")
}

// check finds out before any work whether grant is asked for what it can do.
func (a *access) check(c *replica.Cluster) error {
	if a.use && !a.wanted {
		return fault.Usage("--use needs a kubeconfig, and --kubeconfig=false wants none")
	}
	if err := certs.CheckAdmin(endpointURL(c), a.lifetime); err != nil {
		return fault.Usage("--%w", err)
	}
	return nil
}

// grant puts the cluster into the operator's kubeconfig. The cluster is made: what fails here is said with what to run,
// and is no failure of the command. Most often the operator may not use the seal key.
func (a *access) grant(cmd *cobra.Command, f *cluster.Flags, c *replica.Cluster) {
	if !a.wanted {
		return
	}
	if err := a.merge(cmd, c); err != nil {
		terminal.PrintText(cmd.ErrOrStderr(), "", fmt.Sprintf("kubectl does not know the cluster: %v", err))
		fmt.Fprintf(cmd.ErrOrStderr(), "Once that is mended, or whoever may use the seal key: %s\n",
			f.Again("quorate kubeconfig --merge"))
	}
}

func (a *access) merge(cmd *cobra.Command, c *replica.Cluster) error {
	file, err := kubeconfig.Personal()
	if err != nil {
		return err
	}
	text, until, err := issueAdmin(cmd, c, endpointURL(c), a.lifetime)
	if err != nil {
		return err
	}
	done, err := kubeconfig.Merge(file, c.Name, text, a.use, false)
	if err != nil {
		return err
	}
	done.Say(cmd.ErrOrStderr())
	_, err = fmt.Fprintf(cmd.ErrOrStderr(), "Good until %s.\n", terminal.When(until))
	return err
}

// issueAdmin makes an administrator's kubeconfig from the sealed bundle, and says until when it is good.
func issueAdmin(cmd *cobra.Command, c *replica.Cluster, server string, lifetime time.Duration) (text []byte,
	until time.Time, err error) {
	b, err := readBundle(cmd, c)
	if err != nil {
		return nil, until, err
	}
	now := time.Now()
	text, err = certs.AdminKubeconfig(b, c, server, lifetime, now)
	return text, now.Add(lifetime), err
}
