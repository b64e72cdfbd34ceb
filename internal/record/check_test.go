package record

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"google.golang.org/api/storage/v1"

	"github.com/quorate/quorate/internal/replica"
)

// find returns the findings about a subject as one text.
func find(findings []Finding, subject string) string {
	var out []string
	for _, f := range findings {
		if f.Subject == subject {
			out = append(out, f.String())
		}
	}
	return strings.Join(out, "\n")
}

// worst reports the findings that are not ok.
func worst(findings []Finding) (out []Finding) {
	for _, f := range findings {
		if f.Level != OK {
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
		for range 2 { // its own probe does not disturb the next one
			findings := s.Check(t.Context())
			for subject, want := range map[string]string{"reach": "ok", "write-once": "ok", "deletion": "warn",
				"epochs/3": "warn  epochs/3: claimed by z-a.m2"} {
				if got := find(findings, subject); !strings.HasPrefix(got, want) {
					t.Errorf("%s: %q: want %q", subject, got, want)
				}
			}
			if bad := worst(findings); len(bad) != 2 {
				t.Errorf("%v: want the two warnings only", bad)
			}
		}
		checkView(t, s, v)
	})
}

func TestCheckOfAnEmptyRecord(t *testing.T) {
	findings := newMemory().store().Check(t.Context())
	if got := find(findings, inceptionKey); !strings.HasPrefix(got, "warn") || len(worst(findings)) != 1 {
		t.Errorf("%v", findings)
	}
}

// Each object is written after the inception: whichever is there, a cluster had begun.
func TestAnyObjectProvesThatThereWasAnInception(t *testing.T) {
	for name, v := range map[string]View{
		"an epoch":     {Epochs: []Epoch{{Number: 1}}},
		"a replica":    {Replicas: map[replica.Place][]Incarnation{placeA: {incarnation(placeA, 1, 1, false)}}},
		"a mark":       {Marks: map[MemberID]Mark{1: {MemberID: 1}}},
		"an order":     {Orders: []Order{{Number: 1}}},
		"a bundle":     {Bundle: 1},
		"a snapshot":   {Snapshots: []uint64{1}},
		"all together": {Epochs: []Epoch{{Number: 1}}, Bundle: 1},
	} {
		if got := v.inceptionDamage(); !v.LostInception() || len(got) != 1 || got[0].Level != Fail {
			t.Errorf("%s: lost %t, %v", name, v.LostInception(), got)
		}
		if v.Inception = (&Inception{Name: "c1"}); v.LostInception() {
			t.Errorf("%s and the inception: lost", name)
		}
	}
	if !(Remains{Orphans: []Orphan{{Number: 1}}}).LostInception() {
		t.Error("an orphan: not lost")
	}
	if (View{}).LostInception() || (Remains{}).LostInception() {
		t.Error("nothing at all: lost")
	}
}

func TestCheckFindsDamage(t *testing.T) {
	for name, c := range map[string]struct {
		damage  func(m *memory)
		subject string
		want    string
	}{
		"inception lost": {func(m *memory) { m.remove(inceptionKey) }, inceptionKey,
			"fail  inception.json: it is lost"},
		"claim lost": {func(m *memory) { m.remove(claimKey(2)) }, "epochs/2",
			"fail  epochs/2: claim.json is lost"},
		"outcome lost, but it was closed": {func(m *memory) { m.remove(outcomeKey(2)) }, "epochs/2",
			"fail  epochs/2: outcome.json is lost"},
		"outcome lost, proved by a later epoch alone": {
			func(m *memory) { m.remove(outcomeKey(1)) }, "epochs/1", "warn  epochs/1: outcome.json is lost"},
		"closed lost": {func(m *memory) { m.remove(closedKey(2)) }, "epochs/2",
			"fail  epochs/2: closed.json is lost"},
		"a whole epoch lost": {func(m *memory) { m.remove(claimKey(1)); m.remove(outcomeKey(1)) }, "epochs/1",
			"warn  epochs/1: lost, up to and with epochs/1; nothing is decided by it any more"},
		"what a formed epoch follows lost": {func(m *memory) {
			m.remove(claimKey(2))
			m.remove(outcomeKey(2))
			m.remove(closedKey(2))
			m.put(outcomeKey(3), `{"formed":{"clusterID":"1","memberID":"1"}}`)
		}, "epochs/2", "warn  epochs/2: claim.json is lost; nothing is decided by it any more"},
		"a former epoch lost, but mentioned": {func(m *memory) {
			m.remove(claimKey(1))
			m.remove(outcomeKey(1))
			m.put(markKey(1), `{"memberID":"1","epoch":1}`)
		}, markKey(1), "warn  marks/1.json: it names epoch 1"},
		"newest epoch lost, but mentioned": {func(m *memory) { m.remove(claimKey(3)) }, incarnationKey(placeB, 10),
			"it names epoch 3"},
		"mark of an unknown epoch": {func(m *memory) { m.put(markKey(1), `{"memberID":"1","epoch":9}`) },
			markKey(1), "it names epoch 9"},
		"snapshot of an unknown epoch": {func(m *memory) { m.put("snapshots/9/1-t.json", "{}") }, "snapshots/9/",
			"it names epoch 9"},
		"order that a claim follows lost": {func(m *memory) { m.remove(orderKey(2)) }, "epochs/3",
			"follows orders/2.json, which is lost"},
		"order lost": {func(m *memory) { m.remove(orderKey(1)) }, orderKey(1),
			"order 1 is lost (1 lost below 2)"},
		"order lost after it was done": {func(m *memory) { m.remove(orderKey(1)) }, doneKey(1),
			"the order that it speaks of is lost"},
		"incarnations lost": {func(*memory) {}, incarnationKey(placeB, 2),
			"warn  replicas/z-b.m2/2.json: incarnation 2 is lost (7 lost below 10)"},
		"bundle generation lost": {func(m *memory) { m.remove(sealedKey(1)) }, sealedKey(1),
			"bundle generation 1 is lost"},
		"formed without a bundle": {func(m *memory) {
			m.remove(sealedKey(1))
			m.remove(sealedKey(2))
			m.put(outcomeKey(3), `{"formed":{"clusterID":"1","memberID":"1"}}`)
		}, "epochs/3", "bundle/ has no generation"},
		"bundle lost, and the next epoch claimed": {func(m *memory) {
			m.remove(sealedKey(1))
			m.remove(sealedKey(2))
		}, "epochs/2", "fail  epochs/2: it is formed, but bundle/ has no generation"},
		"given up, though a mark proves that it was formed": {func(m *memory) {
			m.put(outcomeKey(3), `{"abandoned":{"by":"a","why":"b"}}`)
			m.put(markKey(1), `{"memberID":"1","epoch":3}`)
		}, "epochs/3", "fail  epochs/3: outcome.json says that it was given up, and it was formed (a mark of member 1)"},
		"newest formed by a mark, no outcome": {func(m *memory) { m.put(markKey(1), `{"memberID":"1","epoch":3}`) },
			"epochs/3", "fail  epochs/3: outcome.json is lost"},
		"newest formed by a rebuilt claim, no outcome": {func(m *memory) {
			m.remove(claimKey(3))
			m.put(claimKey(3),
				`{"token":"t","seeder":{"zone":"z","name":"m","instanceID":"unknown"},"maxLearners":4,"source":{"kind":"rebuilt"}}`)
		}, "epochs/3", "fail  epochs/3: outcome.json is lost"},
		"closed though abandoned": {func(m *memory) { m.put(closedKey(1), `{}`) }, "epochs/1",
			"it is closed but was not formed"},
		"stranger": {func(m *memory) { m.put("epochs/02/claim.json", `{}`) }, "extra",
			"warn  extra: epochs/02/claim.json"},
		"object in a folder's place": {func(m *memory) { m.put("marks", `{}`) }, "extra", "fail  extra: marks"},
		"undecodable": {func(m *memory) { m.put(orderKey(1), `{`) }, "content",
			"fail  content: read record: decode memory:orders/1.json"},
	} {
		m := newMemory()
		write(t, m.store(), fullView())
		c.damage(m)
		if got := find(m.store().Check(t.Context()), c.subject); !strings.Contains(got, c.want) {
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
		if got := find(s.Check(t.Context()), "write-once"); !strings.HasPrefix(got, "fail") ||
			!strings.Contains(got, "cannot hold a record") {
			t.Errorf("lies %v: %q", lies, got)
		}
	}
}

func TestCheckAsksTheBucketForItsRules(t *testing.T) {
	b := newBucket(t)
	b.server.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "versioned", VersioningEnabled: true})
	s := openStore(t, strings.Replace(b.url, "gs://b/", "gs://versioned/", 1))
	if got := find(s.Check(t.Context()), "deletion"); !strings.HasPrefix(got, "ok") {
		t.Errorf("versioned: %q", got)
	}
	b.always("rules", forbidden, 0)
	if got := find(openStore(t, b.url).Check(t.Context()), "deletion"); !strings.Contains(got,
		"warn  deletion: cannot tell whether") {
		t.Errorf("no permission: %q", got)
	}
}

func TestBucketRules(t *testing.T) {
	const prefix = "p/c1/"
	rule := func(action, condition string) string {
		return `{"versioning":{"enabled":true},"lifecycle":{"rule":[{"action":{"type":"` + action + `"},"condition":` +
			condition + `}]}}`
	}
	for text, want := range map[string]Level{
		`{}`:                              Warn,
		`{"versioning":{"enabled":true}}`: OK,
		`{"softDeletePolicy":{"retentionDurationSeconds":"604800"}}`:             OK,
		`{"softDeletePolicy":{"retentionDurationSeconds":"0"}}`:                  Warn,
		`{"retentionPolicy":{"retentionPeriod":"86400"}}`:                        Warn,
		rule("Delete", `{"age":30}`):                                             Fail,
		rule("Delete", `{"age":30,"matchesPrefix":["p/"]}`):                      Fail,
		rule("Delete", `{"age":30,"matchesPrefix":["p/c1/orders/"]}`):            Fail,
		rule("Delete", `{"age":30,"matchesPrefix":["p/c1/snapshots/","p/c1/"]}`): Fail,
		rule("Delete", `{"age":30,"matchesPrefix":["p/c1/snapshots/"]}`):         OK,
		rule("Delete", `{"age":30,"matchesPrefix":["q/"]}`):                      OK,
		rule("Delete", `{"age":30,"isLive":true}`):                               Fail,
		rule("Delete", `{"age":30,"isLive":false}`):                              OK,
		rule("Delete", `{"numNewerVersions":3}`):                                 OK,
		rule("Delete", `{"age":30,"daysSinceNoncurrentTime":7}`):                 OK,
		rule("Delete", `{"age":30,"numNewerVersions":0}`):                        Fail, // a live object has as many
		rule("Delete", `{"daysSinceNoncurrentTime":0}`):                          Fail, // no older version stays
		rule("SetStorageClass", `{"age":30}`):                                    OK,
	} {
		var rules storage.Bucket
		if err := json.Unmarshal([]byte(text), &rules); err != nil {
			t.Fatal(err)
		}
		findings := judgeRules(&rules, prefix)
		worstLevel := OK
		for _, level := range []Level{Warn, Fail} {
			if slices.ContainsFunc(findings, func(f Finding) bool { return f.Level == level }) {
				worstLevel = level
			}
		}
		if worstLevel != want {
			t.Errorf("%s: %v: want %s", text, findings, want)
		}
	}
}
