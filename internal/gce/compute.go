package gce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
)

// ClusterLabel is the label by which the cluster's VMs and disks are found; its value is the cluster's name.
const ClusterLabel = "quorate-cluster"

// ComputeConfig says which project is asked, and where.
type ComputeConfig struct {
	// Project is the project's id or number.
	Project string
	// Endpoint replaces Google's own, as http://ADDRESS/compute/v1/; it is asked without credentials.
	Endpoint string
	// Metadata gives the VM's service account (scope compute.readonly is enough). Where it is not given, Google's default
	// credentials are used: that is for an operator's machine.
	Metadata *Metadata
	// Stops: Google's default credentials are asked for with the scope that stopping a VM needs. Agents only read.
	Stops bool
	// Wait is how long one question (a page of a list) is retried; 30 s where it is not given.
	Wait time.Duration
}

// Compute asks the Compute API about one project. Its methods may be called concurrently.
type Compute struct {
	project  string
	endpoint string
	metadata *Metadata
	scope    string
	wait     time.Duration

	mu  sync.Mutex
	api *compute.Service // nil until the first question
}

// NewCompute makes the client; it asks nothing yet, not even for credentials, so a restart works while the cloud is away.
func NewCompute(cfg ComputeConfig) (*Compute, error) {
	if cfg.Project == "" {
		return nil, errors.New("make a Compute API client: no project was given")
	}
	c := &Compute{project: cfg.Project, endpoint: cfg.Endpoint, metadata: cfg.Metadata, scope: compute.ComputeReadonlyScope, wait: cfg.Wait}
	if cfg.Stops {
		c.scope = compute.ComputeScope
	}
	if c.wait <= 0 {
		c.wait = defaultWait
	}
	return c, nil
}

// service connects at the first question. Default credentials are renewed for as long as the client lives, so they must
// not end with the question that found them.
func (c *Compute) service(ctx context.Context) (*compute.Service, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.api != nil {
		return c.api, nil
	}
	opts := []option.ClientOption{option.WithUserAgent("quorate")}
	switch plain := newPlainTransport(); {
	case c.endpoint != "":
		opts = append(opts, option.WithEndpoint(c.endpoint), option.WithHTTPClient(direct(plain)))
	case c.metadata != nil:
		opts = append(opts, option.WithHTTPClient(direct(&vmCredentials{metadata: c.metadata, next: plain})))
	default:
		opts = append(opts, option.WithScopes(c.scope))
	}
	api, err := compute.NewService(context.WithoutCancel(ctx), opts...)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	c.api = api
	return api, nil
}

func direct(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: refuseRedirects}
}

func (c *Compute) server() string {
	if c.endpoint == "" {
		return "the Compute API"
	}
	return "the Compute API at " + c.endpoint
}

// ask retries one question.
func (c *Compute) ask(ctx context.Context, asked string, try func(context.Context, *compute.Service) error) error {
	return retry(ctx, c.wait, c.server(), asked, func(ctx context.Context) error {
		api, err := c.service(ctx)
		if err != nil {
			return err
		}
		return judgeCompute(try(ctx, api))
	})
}

// judgeCompute marks the errors that another try would meet again: every refusal but overload and rate limits, and
// answers that are no JSON.
func judgeCompute(err error) error {
	var status *googleapi.Error
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	switch {
	case errors.As(err, &status) && (passing(status.Code) || rateLimited(status)):
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

func rateLimited(status *googleapi.Error) bool {
	for _, item := range status.Errors {
		if item.Reason == "rateLimitExceeded" || item.Reason == "userRateLimitExceeded" {
			return true
		}
	}
	return false
}

// lastPart is the name at the end of a resource's URL; most fields hold URLs.
func lastPart(resource string) string { return resource[strings.LastIndexByte(resource, '/')+1:] }

// labelFilter asks for what carries the cluster's label. The answers are compared again (labelled), so that a filter
// that the server understands otherwise cannot bring another cluster's VMs in.
func labelFilter(cluster string) string { return fmt.Sprintf("labels.%s=%s", ClusterLabel, cluster) }

func labelled(labels map[string]string, cluster string) bool { return labels[ClusterLabel] == cluster }
