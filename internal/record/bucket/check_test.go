package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/storage/v1"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/setup"
)

// find returns the findings about a subject as one text.
func find(findings []record.Finding, subject string) string {
	var out []string
	for _, f := range findings {
		if f.Subject == subject {
			out = append(out, f.String())
		}
	}
	return strings.Join(out, "\n")
}

// worst reports the findings that are not ok.
func worst(findings []record.Finding) (out []record.Finding) {
	for _, f := range findings {
		if f.Level != record.OK {
			out = append(out, f)
		}
	}
	return out
}

func TestCheckOfAWholeRecord(t *testing.T) {
	eachBucket(t, func(t *testing.T, url string) {
		s := openStore(t, url)
		v := fullView()
		v.Replicas[placeB] = v.Replicas[placeB][:1] // without its gap
		v.Bundle = 1
		write(t, s, v)
		for range 2 { // its own probes do not disturb the next one
			findings := s.Check(t.Context(), "")
			for subject, want := range map[string]string{"reach": "ok", "write-once": "ok", "extra": "",
				"rights": "warn  rights: not proven here: that masters may not delete",

				"deletion": "ok    deletion: no retention policy", "content": "",
				"epochs/3": "warn  epochs/3: claimed by z-a.m2"} {
				if got := find(findings, subject); !strings.HasPrefix(got, want) || want == "" && got != "" {
					t.Errorf("%s: %q: want %q", subject, got, want)
				}
			}
		}
		checkView(t, s, v)
	})
}

func TestCheckOfAnEmptyRecord(t *testing.T) {
	findings := newMemory().store().Check(t.Context(), "")
	if got := find(findings, record.InceptionKey); !strings.HasPrefix(got, "warn") || len(worst(findings)) != 3 {
		t.Errorf("%v: want this, and that two rights are not proven", findings)
	}
}

// ruledMemory refuses, as a bucket does whose rules or whose IAM say so.
type ruledMemory struct {
	*memory
	deletes, overwrites error
}

func (m ruledMemory) deleteProbe(ctx context.Context, key string) error {
	if m.deletes != nil {
		return m.deletes
	}
	return m.memory.deleteProbe(ctx, key)
}

func (m ruledMemory) overwrite(ctx context.Context, key string, data []byte) error {
	if _, exists := m.memory.objects[key]; exists && m.overwrites != nil {
		return m.overwrites
	}
	return m.memory.overwrite(ctx, key, data)
}

// What a master may do is proven with its rights alone, and in both directions.
func TestCheckProvesRightsWithAMastersAlone(t *testing.T) {
	denied := &googleapi.Error{Code: http.StatusForbidden, Message: "no storage.objects.delete",
		Errors: []googleapi.ErrorItem{{Reason: "forbidden"}}}
	kept := &googleapi.Error{Code: http.StatusForbidden, Message: "held", Errors: []googleapi.ErrorItem{
		{Reason: "retentionPolicyNotMet"}}}
	away := errors.New("away")
	const master = "master@demo.iam.gserviceaccount.com"
	for name, c := range map[string]struct {
		deletes, overwrites error
		master              string
		want                []string
	}{
		"a master's rights": {denied, nil, master, []string{"ok    rights: " + master + " is refused a deletion",
			"ok    rights: " + master + " can overwrite"}},
		"a master may delete": {nil, nil, master, []string{"fail  rights: " + master + " could delete memory:checks/"}},
		"a master may not overwrite": {denied, denied, master,
			[]string{"fail  rights: " + master + " cannot overwrite objects under marks/"}},
		"a person who may": {nil, nil, "", []string{"warn  rights: not proven here: that masters may not delete",
			"warn  rights: not proven here: that masters may overwrite"}},
		"a person who may not": {denied, denied, "", []string{"warn  rights: not proven here: that masters may not " +
			"delete",
			"warn  rights: not proven here: that masters may overwrite"}},
		"a retention policy is no proof, and keeps marks": {kept, kept, master,
			[]string{"warn  rights: not proven here: that masters may not delete what decides. The bucket's own rules",
				"fail  rights: an object under marks/ cannot be overwritten: the bucket's own rules"}},
		"no answer is no proof": {away, away, master, []string{"warn  rights: not proven here: that masters may not " +
			"delete",
			"warn  rights: not proven here: that masters may overwrite"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := ruledMemory{newMemory(), c.deletes, c.overwrites}
			got := find((&Store{driver: m, cluster: "c1"}).Check(t.Context(), c.master), "rights")
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q: want %q", got, want)
				}
			}
		})
	}
}

func TestCheckFindsDamage(t *testing.T) {
	for name, c := range map[string]struct {
		damage  func(m *memory)
		subject string
		want    string
	}{
		"inception lost": {func(m *memory) { m.remove(record.InceptionKey) }, record.InceptionKey,
			"fail  inception.json: it is lost"},
		"claim lost": {func(m *memory) { m.remove(record.ClaimKey(2)) }, "epochs/2",
			"fail  epochs/2: claim.json is lost"},
		"outcome lost, but it was closed": {func(m *memory) { m.remove(record.OutcomeKey(2)) }, "epochs/2",
			"fail  epochs/2: outcome.json is lost"},
		"outcome lost, proved by a later epoch alone": {
			func(m *memory) { m.remove(record.OutcomeKey(1)) }, "epochs/1", "warn  epochs/1: outcome.json is lost"},
		"closed lost": {func(m *memory) { m.remove(record.ClosedKey(2)) }, "epochs/2",
			"fail  epochs/2: closed.json is lost"},
		"a whole epoch lost": {func(m *memory) { m.remove(record.ClaimKey(1)); m.remove(record.OutcomeKey(1)) },
			"epochs/1",
			"warn  epochs/1: lost, up to and with epochs/1; nothing is decided by it any more"},
		"what a formed epoch follows lost": {func(m *memory) {
			m.remove(record.ClaimKey(2))
			m.remove(record.OutcomeKey(2))
			m.remove(record.ClosedKey(2))
			m.put(record.OutcomeKey(3), `{"formed":{"clusterID":"1","memberID":"1"}}`)
		}, "epochs/2", "warn  epochs/2: claim.json is lost; nothing is decided by it any more"},
		"a former epoch lost, but mentioned": {func(m *memory) {
			m.remove(record.ClaimKey(1))
			m.remove(record.OutcomeKey(1))
			m.put(record.MarkKey(1), `{"memberID":"1","epoch":1}`)
		}, record.MarkKey(1), "warn  marks/1.json: it names epoch 1"},
		"newest epoch lost, but mentioned": {func(m *memory) { m.remove(record.ClaimKey(3)) },
			record.IncarnationKey(placeB, 10),
			"it names epoch 3"},
		"mark of an unknown epoch": {func(m *memory) { m.put(record.MarkKey(1), `{"memberID":"1","epoch":9}`) },
			record.MarkKey(1), "it names epoch 9"},
		"snapshot of an unknown epoch": {func(m *memory) { m.put("snapshots/9/1-t.json", "{}") }, "snapshots/9/",
			"it names epoch 9"},
		"order that a claim follows lost": {func(m *memory) { m.remove(record.OrderKey(2)) }, "epochs/3",
			"follows orders/2.json, which is lost"},
		"order lost": {func(m *memory) { m.remove(record.OrderKey(1)) }, record.OrderKey(1),
			"order 1 is lost (1 lost below 2)"},
		"order lost after it was done": {func(m *memory) { m.remove(record.OrderKey(1)) }, record.DoneKey(1),
			"the order that it speaks of is lost"},
		"incarnations lost": {func(*memory) {}, record.IncarnationKey(placeB, 2),
			"warn  replicas/z-b.m2/2.json: incarnation 2 is lost (7 lost below 10)"},
		"bundle generation lost": {func(m *memory) { m.remove(record.SealedKey(1)) }, record.SealedKey(1),
			"bundle generation 1 is lost"},
		"formed without a bundle": {func(m *memory) {
			m.remove(record.SealedKey(1))
			m.remove(record.SealedKey(2))
			m.put(record.OutcomeKey(3), `{"formed":{"clusterID":"1","memberID":"1"}}`)
		}, "epochs/3", "bundle/ has no generation"},
		"bundle lost, and the next epoch claimed": {func(m *memory) {
			m.remove(record.SealedKey(1))
			m.remove(record.SealedKey(2))
		}, "epochs/2", "fail  epochs/2: it is formed, but bundle/ has no generation"},
		"given up, though a mark proves that it was formed": {func(m *memory) {
			m.put(record.OutcomeKey(3), `{"abandoned":{"by":"a","why":"b"}}`)
			m.put(record.MarkKey(1), `{"memberID":"1","epoch":3}`)
		}, "epochs/3", "fail  epochs/3: outcome.json says that it was given up, and it was formed (a mark of member " +
			"1)"},
		"newest formed by a mark, no outcome": {func(m *memory) {
			m.put(record.MarkKey(1),
				`{"memberID":"1","epoch":3}`)
		},
			"epochs/3", "fail  epochs/3: outcome.json is lost"},
		"newest formed by a rebuilt claim, no outcome": {func(m *memory) {
			m.remove(record.ClaimKey(3))
			m.put(record.ClaimKey(3),
				`{"token":"t","seeder":{"zone":"z","name":"m","instanceID":"unknown"},"maxLearners":4,"source":{"kind":"rebuilt"}}`)
		}, "epochs/3", "fail  epochs/3: outcome.json is lost"},
		"closed though abandoned": {func(m *memory) { m.put(record.ClosedKey(1), `{}`) }, "epochs/1",
			"it is closed but was not formed"},
		"stranger": {func(m *memory) { m.put("epochs/02/claim.json", `{}`) }, "extra",
			"warn  extra: epochs/02/claim.json"},
		"object in a folder's place": {func(m *memory) { m.put("marks", `{}`) }, "extra", "fail  extra: marks"},
		"undecodable": {func(m *memory) { m.put(record.OrderKey(1), `{`) }, "content",
			"fail  content: read record: decode memory:orders/1.json"},
	} {
		m := newMemory()
		write(t, m.store(), fullView())
		c.damage(m)
		if got := find(m.store().Check(t.Context(), ""), c.subject); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q: want %q", name, got, c.want)
		}
	}
}

// forgetful is a place that does not keep the write-once rule.
type forgetful struct {
	*memory
	lies bool
}

func (f forgetful) create(ctx context.Context, key string, data []byte) error {
	err := f.memory.create(ctx, key, data)
	if errors.Is(err, errExists) {
		f.put(key, string(data))
		if !f.lies {
			err = nil
		}
	}
	return err
}

func TestCheckFindsAPlaceThatOverwrites(t *testing.T) {
	for _, lies := range []bool{false, true} {
		s := &Store{driver: forgetful{newMemory(), lies}, cluster: "c1"}
		if got := find(s.Check(t.Context(), ""), "write-once"); !strings.HasPrefix(got, "fail") ||
			!strings.Contains(got, "cannot hold a record") {
			t.Errorf("lies %v: %q", lies, got)
		}
	}
}

func TestCheckAsksTheBucketForItsRules(t *testing.T) {
	b := newBucket(t)
	b.server.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "versioned", VersioningEnabled: true})
	s := openStore(t, strings.Replace(b.url, "gs://b/", "gs://versioned/", 1))
	if got := find(s.Check(t.Context(), ""), "deletion"); !strings.Contains(got, "keeps older versions") {
		t.Errorf("versioned: %q", got)
	}
	b.always("rules", forbidden, 0)
	if got := find(openStore(t, b.url).Check(t.Context(), ""), "deletion"); !strings.Contains(got,
		"warn  deletion: cannot tell whether") {
		t.Errorf("no permission: %q", got)
	}
}

func TestBucketRules(t *testing.T) {
	const prefix = "p/c1/"
	const whole = `"iamConfiguration":{"uniformBucketLevelAccess":{"enabled":true},"publicAccessPrevention":"enforced"}`
	rules := func(fields string) string { return "{" + whole + fields + "}" }
	rule := func(action, condition string) string {
		return rules(
			`,"softDeletePolicy":{"retentionDurationSeconds":"604800"},"lifecycle":{"rule":[{"action":{"type":"` +
				action + `"},"condition":` + condition + `}]}`)
	}
	const softly = `,"softDeletePolicy":{"retentionDurationSeconds":"604800"}`
	for text, want := range map[string]record.Level{
		rules(``):                               record.Warn,
		rules(`,"versioning":{"enabled":true}`): record.Warn, // older versions add up
		rules(`,"versioning":{"enabled":true},"lifecycle":{"rule":[{"action":{"type":"Delete"},` +
			`"condition":{"isLive":false}}]}`): record.OK,
		rules(softly): record.OK,
		rules(`,"softDeletePolicy":{"retentionDurationSeconds":"0"}`):            record.Warn,
		rules(softly + `,"retentionPolicy":{"retentionPeriod":"86400"}`):         record.Fail,
		rules(softly + `,"defaultEventBasedHold":true`):                          record.Fail,
		rules(softly + `,"billing":{"requesterPays":true}`):                      record.Fail,
		rules(softly + `,"ipFilter":{"mode":"Enabled"}`):                         record.Warn,
		rules(softly + `,"ipFilter":{"mode":"Disabled"}`):                        record.OK,
		`{"softDeletePolicy":{"retentionDurationSeconds":"604800"}}`:             record.Fail,
		rule("Delete", `{"age":30}`):                                             record.Fail,
		rule("Delete", `{"age":30,"matchesPrefix":["p/"]}`):                      record.Fail,
		rule("Delete", `{"age":30,"matchesPrefix":["p/c1/orders/"]}`):            record.Fail,
		rule("Delete", `{"age":30,"matchesPrefix":["p/c1/snapshots/","p/c1/"]}`): record.Fail,
		rule("Delete", `{"age":30,"matchesPrefix":["p/c1/snapshots/"]}`):         record.OK,
		rule("Delete", `{"age":30,"matchesPrefix":["q/"]}`):                      record.OK,
		rule("Delete", `{"age":30,"isLive":true}`):                               record.Fail,
		rule("Delete", `{"age":30,"isLive":false}`):                              record.OK,
		rule("Delete", `{"numNewerVersions":3}`):                                 record.OK,
		rule("Delete", `{"age":30,"daysSinceNoncurrentTime":7}`):                 record.OK,
		rule("Delete", `{"age":30,"numNewerVersions":0}`):                        record.Fail,
		// a live object has as many
		rule("Delete", `{"daysSinceNoncurrentTime":0}`): record.Fail, // no older version stays
		rule("SetStorageClass", `{"age":30}`):           record.OK,
	} {
		var rules storage.Bucket
		if err := json.Unmarshal([]byte(text), &rules); err != nil {
			t.Fatal(err)
		}
		findings := setup.JudgeBucket(rulesOf(&rules), "b", prefix, "")
		worstLevel := record.OK
		for _, level := range []record.Level{record.Warn, record.Fail} {
			if slices.ContainsFunc(findings, func(f record.Finding) bool { return f.Level == level }) {
				worstLevel = level
			}
		}
		if worstLevel != want {
			t.Errorf("%s: %v: want %s", text, findings, want)
		}
	}
}
