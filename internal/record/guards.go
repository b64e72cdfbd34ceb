package record

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"gocloud.dev/blob"
)

// bucketRules is the part of GCS's bucket resource that says how long objects stay. gocloud does not know it, so it is
// asked for directly. Source: https://cloud.google.com/storage/docs/json_api/v1/buckets
type bucketRules struct {
	Versioning struct {
		Enabled bool `json:"enabled"`
	} `json:"versioning"`
	RetentionPolicy struct {
		Seconds int64 `json:"retentionPeriod,string"`
	} `json:"retentionPolicy"`
	SoftDeletePolicy struct {
		Seconds int64 `json:"retentionDurationSeconds,string"`
	} `json:"softDeletePolicy"`
	Lifecycle struct {
		Rules []lifecycleRule `json:"rule"`
	} `json:"lifecycle"`
}

// lifecycleRule is one rule that GCS applies by itself.
type lifecycleRule struct {
	Action struct {
		Type string `json:"type"`
	} `json:"action"`
	Condition struct {
		IsLive                  *bool    `json:"isLive"`
		DaysSinceNoncurrentTime *int     `json:"daysSinceNoncurrentTime"`
		NumNewerVersions        *int     `json:"numNewerVersions"`
		MatchesPrefix           []string `json:"matchesPrefix"`
	} `json:"condition"`
}

// deletesRecord reports whether the rule can delete a live object of the record under prefix that is not a snapshot.
func (r lifecycleRule) deletesRecord(prefix string) bool {
	c := r.Condition
	onlyOldVersions := c.DaysSinceNoncurrentTime != nil || c.NumNewerVersions != nil || (c.IsLive != nil && !*c.IsLive)
	if r.Action.Type != "Delete" || onlyOldVersions {
		return false
	}
	for _, p := range c.MatchesPrefix {
		if strings.HasPrefix(prefix, p) || (strings.HasPrefix(p, prefix) && !strings.HasPrefix(p, prefix+"snapshots/")) {
			return true
		}
	}
	return len(c.MatchesPrefix) == 0
}

func (g *gcs) guards(ctx context.Context) []Finding {
	rules, err := do(ctx, g, func(ctx context.Context, _ *blob.Bucket, _ *attempt) (bucketRules, error) {
		return g.readRules(ctx)
	})
	if err != nil {
		return []Finding{{Warn, "deletion", "cannot tell whether the bucket keeps versions or deletes objects by rule: " +
			"that needs storage.buckets.get: " + err.Error()}}
	}
	return rules.judge(g.prefix)
}

// readRules asks GCS for the bucket's own resource.
func (g *gcs) readRules(ctx context.Context) (rules bucketRules, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"https://storage.googleapis.com/storage/v1/b/"+url.PathEscape(g.bucket), nil)
	if err != nil {
		return rules, err
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return rules, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return rules, fmt.Errorf("server answered %s", resp.Status)
	}
	return rules, json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&rules)
}

// judge turns the rules into findings.
func (r bucketRules) judge(prefix string) []Finding {
	var out []Finding
	switch {
	case r.Versioning.Enabled:
		out = append(out, Finding{OK, "deletion", "the bucket keeps older versions of objects"})
	case r.SoftDeletePolicy.Seconds > 0:
		out = append(out, Finding{OK, "deletion", fmt.Sprintf("deleted objects can be restored for %d days", r.SoftDeletePolicy.Seconds/86400)})
	case r.RetentionPolicy.Seconds == 0:
		out = append(out, Finding{Warn, "deletion", "the bucket keeps neither versions nor deleted objects: turn on object versioning"})
	}
	if r.RetentionPolicy.Seconds > 0 {
		out = append(out, Finding{Warn, "deletion", "the bucket's retention policy protects the record, but also refuses to overwrite marks/: " +
			"object versioning protects it without that"})
	}
	for _, rule := range r.Lifecycle.Rules {
		if rule.deletesRecord(prefix) {
			out = append(out, Finding{Fail, "deletion", fmt.Sprintf("a lifecycle rule deletes objects of the record: "+
				"limit it to the prefix %ssnapshots/ or remove it", prefix)})
		}
	}
	return out
}
