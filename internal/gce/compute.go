package gce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
)

// ClusterLabel is the label by which the cluster's VMs and disks are found; its value is the cluster's name.
const ClusterLabel = "quorate-cluster"

// ComputeConfig says which project is asked, for which cluster's VMs, and where.
type ComputeConfig struct {
	// Project is the project's id or number, Cluster the cluster's name.
	Project, Cluster string
	// Region is the one that all of the cluster's VMs are in: a list needs nothing else to answer. Empty: everything
	// has to.
	Region string
	// Endpoint replaces Google's own, as http://ADDRESS/compute/v1/.
	Endpoint string
	// Client sends the requests: Metadata.Client, or UserClient for an operator's command. nil: without credentials.
	Client *http.Client
	// Wait is how long one question (a page of a list) is retried; 30 s where it is not given.
	Wait time.Duration
}

// Compute asks the Compute API about one cluster's project. Its methods may be called concurrently.
type Compute struct {
	project  string
	cluster  string
	region   string
	endpoint string
	wait     time.Duration
	api      *compute.Service
	limit    rateLimit
}

// NewCompute makes the client; it asks nothing yet, not even for credentials, so a restart works while the cloud is
// away.
func NewCompute(cfg ComputeConfig) (*Compute, error) {
	if cfg.Project == "" || cfg.Cluster == "" {
		return nil, errors.New("make a Compute API client: no project or no cluster was given")
	}
	client := cfg.Client
	if client == nil {
		client = direct(newCloudTransport())
	}
	opts := []option.ClientOption{option.WithUserAgent("quorate"), option.WithHTTPClient(client)}
	if cfg.Endpoint != "" {
		opts = append(opts, option.WithEndpoint(cfg.Endpoint))
	}
	api, err := compute.NewService(context.Background(), opts...)
	if err != nil {
		return nil, fmt.Errorf("make a Compute API client: %w", err)
	}
	c := &Compute{project: cfg.Project, cluster: cfg.Cluster, region: cfg.Region, endpoint: cfg.Endpoint,
		wait: cfg.Wait, api: api}
	if c.wait <= 0 {
		c.wait = defaultWait
	}
	return c, nil
}

func (c *Compute) server() string {
	if c.endpoint == "" {
		return "the Compute API"
	}
	return "the Compute API at " + c.endpoint
}

// ask retries one question. One that is over the rate limit is asked again once the limit's minute is over, and no
// other is asked before.
func (c *Compute) ask(ctx context.Context, asked string, try func(context.Context, *compute.Service) error) error {
	for tries := 1; ; tries++ {
		if err := c.limit.await(ctx); err != nil {
			return fmt.Errorf("ask %s for %s: %w", c.server(), asked, err)
		}
		err := retry(ctx, c.wait, c.server(), asked, func(ctx context.Context) error {
			return judgeCompute(try(ctx, c.api))
		})
		var limited rateLimited
		if !errors.As(err, &limited) || tries == rateMinutes {
			return err
		}
		c.limit.reached(limited, time.Now())
	}
}

// judgeCompute marks the errors that another try would meet again: every refusal but overload, and answers that are no
// JSON. One over the rate limit meets the same until the minute is over.
func judgeCompute(err error) error {
	var status *googleapi.Error
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	switch {
	case errors.As(err, &status) && overRate(status):
		return finalError{rateLimited{refusal{status}}}
	case errors.As(err, &status) && passing(status.Code):
		return fmt.Errorf("found status %d: %q", status.Code, shorten(text(status)))
	case errors.As(err, &status):
		return finalError{refusal{status}}
	case errors.As(err, &syntax), errors.As(err, &shape):
		return finalError{fmt.Errorf("found an answer that is not the Compute API's (%w)", err)}
	}
	return err
}

// refusal prints an API error in one line.
type refusal struct{ status *googleapi.Error }

func (r refusal) Error() string {
	return fmt.Sprintf("found status %d: %q", r.status.Code, shorten(text(r.status)))
}
func (r refusal) Unwrap() error { return r.status }

func text(status *googleapi.Error) string {
	if status.Message != "" {
		return status.Message
	}
	return status.Body
}

// lastPart is the name at the end of a resource's URL; most fields hold URLs.
func lastPart(resource string) string { return resource[strings.LastIndexByte(resource, '/')+1:] }

// labelFilter asks for what carries the cluster's label. The answers are compared again (labelled), so that a filter
// that the server understands otherwise cannot bring another cluster's VMs in.
func (c *Compute) labelFilter() string { return fmt.Sprintf("labels.%s=%s", ClusterLabel, c.cluster) }

func (c *Compute) labelled(labels map[string]string) bool { return labels[ClusterLabel] == c.cluster }
