package gce

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/api/cloudkms/v1"
	"google.golang.org/api/cloudresourcemanager/v1"
	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iam/v1"
	"google.golang.org/api/option"

	"github.com/quorate/quorate/internal/setup"
)

// SurveyConfig says what is asked about.
type SurveyConfig struct {
	// Project, Region and Cluster are whose VMs, disks and networks are asked for.
	Project, Region, Cluster string
	// Endpoint replaces Google's Compute API, as http://ADDRESS/compute/v1/.
	Endpoint string
	// Client sends the requests.
	Client *http.Client
	// Wait is how long all questions together may take; 30 s where it is not given. A try takes a sixth of it at most.
	Wait time.Duration
	// Attribute is the instance attribute with a Cluster document, of which ClusterOf reads the cluster's name.
	Attribute string
	ClusterOf func(document string) string
}

// Survey asks a project for what setup.Judge judges. It only reads. What one question lacks, such as a permission, is
// that fact's fault and no error: the others are asked all the same.
type Survey struct {
	conf    SurveyConfig
	wait    time.Duration
	compute *compute.Service
	keys    *cloudkms.Service
	roles   *iam.Service
	project *cloudresourcemanager.Service
	count   count
}

// count is how many questions were asked, how many of them had no answer at all, and what one of those met.
type count struct {
	mu                sync.Mutex
	asked, unanswered int
	such              error
}

// add counts a question; fault is nil where it has an answer.
func (c *count) add(fault *setup.Fault, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked++; fault != nil && fault.Why == setup.Failed {
		c.unanswered, c.such = c.unanswered+1, err
	}
}

// NewSurvey asks nobody yet.
func NewSurvey(conf SurveyConfig) (*Survey, error) {
	s := &Survey{conf: conf, wait: conf.Wait}
	if s.wait <= 0 {
		s.wait = defaultWait
	}
	ctx, opts := context.Background(), []option.ClientOption{option.WithUserAgent("quorate"),
		option.WithHTTPClient(conf.Client)}
	ofCompute, others := opts, opts
	if conf.Endpoint != "" { // a stand-in has all of Google's APIs, and Google's own are not asked about its project
		ofCompute = append(opts[:2:2], option.WithEndpoint(conf.Endpoint))
		others = append(opts[:2:2], option.WithEndpoint(strings.TrimSuffix(conf.Endpoint, "compute/v1/")))
	}
	var errs [4]error
	s.compute, errs[0] = compute.NewService(ctx, ofCompute...)
	s.keys, errs[1] = cloudkms.NewService(ctx, others...)
	s.roles, errs[2] = iam.NewService(ctx, others...)
	s.project, errs[3] = cloudresourcemanager.NewService(ctx, others...)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("make clients of Google's APIs: %w", err)
	}
	return s, nil
}

// surveyQuestions bounds how many questions are under way. All of the first round have room: one that is silent keeps
// no other from being asked.
const surveyQuestions = 20

// Ask fills in all facts, of which bucket asks for those of the record's bucket: the policy there says which roles are
// looked up. It uses the facts' KeyName, Account and Needs. All questions have Wait together. That none of them was
// answered is an error: then nothing is known about the project.
func (s *Survey) Ask(ctx context.Context, f *setup.Facts, bucket func(context.Context, *setup.Facts)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.wait, fmt.Errorf("the %s for all questions are over", s.wait))
	defer cancel()
	var group errgroup.Group
	group.SetLimit(surveyQuestions)
	for _, question := range []func(){
		func() { bucket(ctx, f) },
		func() { s.machines(ctx, f) },
		func() { s.aboutProject(ctx, f) },
		func() { f.Firewall = s.firewall(ctx) },
		func() { f.Subnets = s.subnets(ctx) },
		func() { f.NATs = s.nats(ctx) },
		func() { f.Addresses = s.addresses(ctx) },
		func() { s.policies(ctx, f) },
		func() { s.key(ctx, f) },
		func() { s.keyPolicy(ctx, f) },
		func() { s.ringPolicy(ctx, f) },
		func() { s.account(ctx, f) },
		func() { s.callerOnProject(ctx, f) },
		func() { s.callerOnAccount(ctx, f) },
	} {
		group.Go(func() error { question(); return nil })
	}
	_ = group.Wait() // no question returns an error
	s.permissions(ctx, f)
	if s.count.unanswered == s.count.asked {
		return fmt.Errorf("none of %d questions about project %s was answered by Google, such as: %w", s.count.asked,
			s.conf.Project, s.count.such)
	}
	return nil
}

// survey asks one question, with retries.
func survey[T any](ctx context.Context, s *Survey, api, asked string, try func(context.Context) (T,
	error)) setup.Asked[T] {
	var out setup.Asked[T]
	if ctx.Err() != nil { // it is not counted: nobody was asked
		out.Fault = &setup.Fault{Why: setup.Failed, Text: fmt.Sprintf("%s was not asked for %s: %s", api, asked,
			context.Cause(ctx))}
		return out
	}
	err := retry(ctx, s.wait, api, asked, func(ctx context.Context) (err error) {
		out.Answer, err = try(ctx)
		return judgeCompute(err)
	})
	if err != nil {
		out.Fault = faultOf(err)
	}
	s.count.add(out.Fault, err)
	return out
}

// faultOf says what kind of failure an error of one of Google's APIs is.
func faultOf(err error) *setup.Fault {
	f := &setup.Fault{Why: setup.Failed, Text: strings.Join(strings.Fields(err.Error()), " ")}
	var status *googleapi.Error
	if !errors.As(err, &status) {
		return f
	}
	switch {
	case status.Code == http.StatusForbidden && isDisabled(status):
		f.Why = setup.Disabled
	case status.Code == http.StatusForbidden, status.Code == http.StatusUnauthorized:
		f.Why = setup.Refused
	case status.Code == http.StatusNotFound:
		f.Why = setup.Absent
	}
	return f
}

// isDisabled: older APIs name the reason accessNotConfigured, newer ones SERVICE_DISABLED, in a detail of the body.
func isDisabled(status *googleapi.Error) bool {
	for _, item := range status.Errors {
		if item.Reason == "accessNotConfigured" {
			return true
		}
	}
	return strings.Contains(status.Body, `"SERVICE_DISABLED"`)
}
