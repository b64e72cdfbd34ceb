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

// ComputeConfig says which project is asked, and where.
type ComputeConfig struct {
	// Project is the project's id.
	Project string
	// Endpoint replaces Google's own, as http://ADDRESS/compute/v1/; it is asked without credentials.
	Endpoint string
	// Wait is how long one question (a page of a list) is retried; 30 s where it is not given.
	Wait time.Duration
}

// Compute asks the Compute API about one project. Its methods may be called concurrently.
type Compute struct {
	project string
	server  string
	wait    time.Duration
	api     *compute.Service
}

// NewCompute makes the client. Without an endpoint it looks for the default credentials, which on a VM are those of its
// service account (scope compute.readonly is enough); that they are missing is an error here, that they are refused is
// one of the first question.
func NewCompute(ctx context.Context, cfg ComputeConfig) (*Compute, error) {
	if cfg.Project == "" {
		return nil, errors.New("make a Compute API client: no project was given")
	}
	c := &Compute{project: cfg.Project, server: "the Compute API", wait: cfg.Wait}
	if c.wait <= 0 {
		c.wait = defaultWait
	}
	opts := []option.ClientOption{option.WithScopes(compute.ComputeReadonlyScope), option.WithUserAgent("quorate")}
	if cfg.Endpoint != "" {
		c.server += " at " + cfg.Endpoint
		plain := &http.Client{Transport: newPlainTransport(), CheckRedirect: refuseRedirects}
		opts = []option.ClientOption{option.WithEndpoint(cfg.Endpoint), option.WithHTTPClient(plain), option.WithUserAgent("quorate")}
	}
	api, err := compute.NewService(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", c.server, err)
	}
	c.api = api
	return c, nil
}

// ask retries one question.
func (c *Compute) ask(ctx context.Context, asked string, try func(context.Context) error) error {
	return retry(ctx, c.wait, c.server, asked, func(ctx context.Context) error { return judgeCompute(try(ctx)) })
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
