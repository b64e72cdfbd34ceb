package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/fleet/token"
	"github.com/quorate/quorate/internal/replica"
)

const (
	// visitLifetime is how long the administrator's certificate lives that a command makes for itself.
	visitLifetime = 5 * time.Minute
	// apiTimeout bounds one request to the cluster.
	apiTimeout = 15 * time.Second
)

func newToken() *cobra.Command {
	return command.Group(&cobra.Command{Use: "token", Short: "Make, list or delete the tokens by which workers join",
		Long: `A bootstrap token is what a new worker's kubelet shows until it has a certificate of its own. It is good for
that alone, for as many workers as show it, until it expires or is deleted. Workers that have joined stay.

These commands ask the cluster's apiserver as an administrator: with a certificate of five minutes that is made from the
sealed bundle, which needs the seal key, or with --kubeconfig.`},
		newTokenCreate(), newTokenList(), newTokenDelete())
}

// apiFlags say which cluster's apiserver is asked, and as whom.
type apiFlags struct {
	cluster.Flags
	server, kubeconfig string
}

func (f *apiFlags) add(cmd *cobra.Command) {
	f.Flags.Add(cmd)
	cmd.Flags().StringVar(&f.server, "server", "", "the URL by which the cluster is reached; the endpoint where it is "+
		"not given")
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "an administrator's kubeconfig, in place of the seal key")
}

// open makes the client of an administrator. Nothing is asked of the cluster yet.
func (f *apiFlags) open(cmd *cobra.Command) (*replica.Cluster, *rest.Config, *token.Client, error) {
	load := f.LoadWithKey
	if f.kubeconfig != "" {
		load = f.Load
	}
	c, err := load()
	if err != nil {
		return nil, nil, nil, err
	}
	if f.server == "" {
		f.server = endpointURL(c)
	}
	if err := certs.CheckAdmin(f.server, visitLifetime); err != nil {
		return nil, nil, nil, fault.Usage("--%w", err)
	}
	config, err := f.restConfig(cmd, c)
	if err != nil {
		return nil, nil, nil, err
	}
	config.Timeout, config.UserAgent = apiTimeout, "quorate"
	client, err := token.NewClient(config)
	return c, config, client, err
}

func (f *apiFlags) restConfig(cmd *cobra.Command, c *replica.Cluster) (*rest.Config, error) {
	if f.kubeconfig != "" {
		text, err := os.ReadFile(f.kubeconfig)
		if err != nil {
			return nil, fault.File("read --kubeconfig: %w", err)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(text)
		if err != nil {
			return nil, fault.File("read --kubeconfig %s: %w", f.kubeconfig, err)
		}
		if !cmd.Flags().Changed("server") {
			f.server = config.Host
		}
		config.Host = f.server
		return config, nil
	}
	b, err := readBundle(cmd, c)
	if err != nil {
		return nil, err
	}
	text, err := certs.AdminKubeconfig(b, c, f.server, visitLifetime, time.Now())
	if err != nil {
		return nil, err
	}
	return clientcmd.RESTConfigFromKubeConfig(text)
}

// endpointURL is the cluster's endpoint. Validate has seen to it that there is an address.
func endpointURL(c *replica.Cluster) string {
	return "https://" + net.JoinHostPort(c.EndpointAddresses()[0].String(), strconv.Itoa(c.Endpoint.Port))
}

// fault says which address did not answer, without the request that was on its way.
func (f *apiFlags) fault(err error) error {
	if away := (*url.Error)(nil); errors.As(err, &away) {
		return fmt.Errorf("the cluster does not answer at %s (--server names another address): %w", f.server, away.Err)
	}
	return fmt.Errorf("%s: %w", f.server, err)
}

func newTokenCreate() *cobra.Command {
	var f apiFlags
	var output, description string
	var lifetime time.Duration
	var force bool
	cmd := &cobra.Command{Use: "create", Short: "Make a token, and print the kubeconfig that a worker's kubelet takes",
		Args: command.NoArguments,
		Long: `Make a bootstrap token, and print what a worker's kubelet takes as --bootstrap-kubeconfig. The first one also
grants the roles by which kubelets get and renew their certificates: kubeadm's, by its names. docs/workers.md has a whole
worker.`,
		Example: `  quorate token create --config cluster.yaml --lifetime 1h --output bootstrap-kubelet.conf`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			made, err := token.New(lifetime, cmp.Or(description, "made by "+cluster.GivenBy()), time.Now())
			if err != nil {
				return fault.Usage("--%w", err)
			}
			if err := checkKubeconfig(output, force); err != nil {
				return err
			}
			c, config, client, err := f.open(cmd)
			if err != nil {
				return err
			}
			text, err := token.Kubeconfig(c.Name, f.server, config, made)
			if err != nil {
				return fault.File("%w", err)
			}
			if err := client.Create(cmd.Context(), made); err != nil {
				return f.fault(err)
			}
			if err := writeKubeconfig(cmd.OutOrStdout(), output, text, force); err != nil {
				return fmt.Errorf("%w; token %s was made, and 'quorate token delete %[2]s' takes it back", err, made.ID)
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "Token %s is good until %s, for as many workers as show it.\n"+
				"To take it back: quorate token delete %[1]s\n", made.ID, terminal.When(made.Expires))
			return err
		}}
	f.add(cmd)
	cmd.Flags().StringVar(&output, "output", "", "the file to write, with mode 0600; standard output where it is "+
		"not given")
	cmd.Flags().DurationVar(&lifetime, "lifetime", token.Lifetime, "how long it is good")
	cmd.Flags().StringVar(&description, "description", "", "what it is for, as 'token list' shows it")
	cmd.Flags().BoolVar(&force, "force", false, "replace the file of --output")
	return cmd
}

func newTokenList() *cobra.Command {
	var f apiFlags
	var output string
	cmd := &cobra.Command{Use: "list", Short: "List the tokens of workers, the next to expire first; never a secret",
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, _, client, err := f.open(cmd)
			if err != nil {
				return err
			}
			list, err := client.List(cmd.Context())
			if err != nil {
				return f.fault(err)
			}
			return terminal.PrintAs(cmd.OutOrStdout(), output, append([]token.Token{}, list...),
				func(w io.Writer) { showTokens(w, list) })
		}}
	f.add(cmd)
	command.AddOutput(cmd, &output)
	return cmd
}

func showTokens(w io.Writer, list []token.Token) {
	if len(list) == 0 {
		fmt.Fprintln(w, "There is no token.")
		return
	}
	var rows []terminal.Row
	for _, t := range list {
		expires := "never"
		if !t.Expires.IsZero() {
			expires = terminal.When(t.Expires)
		}
		rows = append(rows, terminal.Row{Cells: []string{t.ID, expires, terminal.OrNone(t.Description)}})
	}
	terminal.PrintTable(w, []string{"TOKEN", "EXPIRES", "DESCRIPTION"}, rows)
}

func newTokenDelete() *cobra.Command {
	var f apiFlags
	cmd := &cobra.Command{Use: "delete TOKEN", Short: "Take a token back; workers that have joined stay",
		Args:    command.Exactly("TOKEN"),
		Example: `  quorate token delete 07401b --config cluster.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := token.CheckID(args[0]); err != nil {
				return fault.Usage("%w", err)
			}
			_, _, client, err := f.open(cmd)
			if err != nil {
				return err
			}
			if err := client.Delete(cmd.Context(), args[0]); err != nil {
				return f.fault(err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Token %s is deleted.\n", args[0])
			return err
		}}
	f.add(cmd)
	cmd.ValidArgsFunction = command.Completing(func(ctx context.Context) ([]string, error) {
		cmd.SetContext(ctx)
		_, _, client, err := f.open(cmd)
		if err != nil {
			return nil, err
		}
		list, err := client.List(ctx)
		var ids []string
		for _, t := range list {
			ids = append(ids, t.ID)
		}
		return ids, err
	})
	return cmd
}
