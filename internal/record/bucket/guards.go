package bucket

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/storage/v1"

	"github.com/quorate/quorate/internal/setup"
)

// Survey asks for what setup.Judge judges of the record's bucket. It only reads.
func (s *Store) Survey(ctx context.Context, f *setup.Facts) {
	s.driver.survey(ctx, f)
}

func (g *gcs) survey(ctx context.Context, f *setup.Facts) {
	f.BucketName, f.Prefix = g.bucket, g.prefix
	f.Bucket = asked(do(ctx, g, func(ctx context.Context) (setup.Bucket, error) {
		b, err := g.api.Buckets.Get(g.bucket).Projection("noAcl").Context(ctx).Do()
		if err != nil {
			return setup.Bucket{}, err
		}
		return rulesOf(b), nil
	}))
	if fault := f.Bucket.Fault; fault != nil && fault.Why == setup.Failed { // it would not answer the others either
		f.BucketPolicy.Fault, f.HasOnBucket.Fault = fault, fault
		return
	}
	f.BucketPolicy = asked(do(ctx, g, func(ctx context.Context) (setup.Policy, error) {
		// Only version 3 has conditions.
		p, err := g.api.Buckets.GetIamPolicy(g.bucket).OptionsRequestedPolicyVersion(3).Context(ctx).Do()
		if err != nil {
			return nil, err
		}
		return policyOf(p), nil
	}))
	if needs := f.Needs.Bucket; len(needs) > 0 {
		f.HasOnBucket = asked(do(ctx, g, func(ctx context.Context) ([]string, error) {
			r, err := g.api.Buckets.TestIamPermissions(g.bucket, needs).Context(ctx).Do()
			if err != nil {
				return nil, err
			}
			return r.Permissions, nil
		}))
	}
}

// asked is an answer as the judge takes it.
func asked[T any](answer T, err error) setup.Asked[T] {
	if err == nil {
		return setup.Asked[T]{Answer: answer}
	}
	fault := &setup.Fault{Why: setup.Failed, Text: err.Error()}
	switch status(err) {
	case http.StatusUnauthorized, http.StatusForbidden:
		fault.Why = setup.Refused
		if hasReason(err, "accessNotConfigured") {
			fault.Why = setup.Disabled
		}
	case http.StatusNotFound:
		fault.Why = setup.Absent
	}
	return setup.Asked[T]{Fault: fault}
}

// hasReason reports whether Google gives one of these reasons for a refusal.
func hasReason(err error, reasons ...string) bool {
	var answered *googleapi.Error
	return errors.As(err, &answered) && slices.ContainsFunc(answered.Errors, func(i googleapi.ErrorItem) bool {
		return slices.Contains(reasons, i.Reason)
	})
}

// rulesOf translates what a bucket says of itself.
func rulesOf(b *storage.Bucket) setup.Bucket {
	out := setup.Bucket{Location: b.Location, LocationType: b.LocationType, EventBasedHold: b.DefaultEventBasedHold,
		Versioning: b.Versioning != nil && b.Versioning.Enabled, RequesterPays: b.Billing != nil &&
			b.Billing.RequesterPays,
		IPFilter: b.IpFilter != nil && b.IpFilter.Mode == "Enabled"}
	if c := b.IamConfiguration; c != nil {
		out.UniformAccess = c.UniformBucketLevelAccess != nil && c.UniformBucketLevelAccess.Enabled
		out.PublicAccessPrevented = c.PublicAccessPrevention == "enforced"
	}
	if p := b.RetentionPolicy; p != nil {
		out.Retention = time.Duration(p.RetentionPeriod) * time.Second
	}
	if p := b.SoftDeletePolicy; p != nil {
		out.SoftDelete = time.Duration(p.RetentionDurationSeconds) * time.Second
	}
	if b.Lifecycle == nil {
		return out
	}
	for _, r := range b.Lifecycle.Rule {
		if r.Action != nil && r.Action.Type == "Delete" && r.Condition != nil {
			out.Lifecycle = append(out.Lifecycle, setup.Rule{Prefixes: r.Condition.MatchesPrefix,
				OldVersionsOnly: oldVersionsOnly(r.Condition)})
		}
	}
	return out
}

// oldVersionsOnly: a number of newer versions that is 0 limits nothing: a live object has as many. Nor does a number of
// days since there is a newer one: that lets no version stay, and what is deleted by mistake is gone.
func oldVersionsOnly(c *storage.BucketLifecycleRuleCondition) bool {
	return c.DaysSinceNoncurrentTime > 0 || c.NumNewerVersions > 0 || c.IsLive != nil && !*c.IsLive
}

func policyOf(p *storage.Policy) (out setup.Policy) {
	for _, b := range p.Bindings {
		one := setup.Binding{Role: b.Role, Members: b.Members}
		if b.Condition != nil {
			one.Condition = b.Condition.Expression
		}
		out = append(out, one)
	}
	return out
}

// isKept reports whether an object may not be replaced because of the bucket's rules, whoever asks.
func isKept(err error) bool {
	return hasReason(err, "retentionPolicyNotMet", "objectUnderActiveHold") ||
		status(err) == http.StatusForbidden && strings.Contains(err.Error(), "retention policy")
}
