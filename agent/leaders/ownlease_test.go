package leaders

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
)

// twoViews answers like an apiserver whose memory of one Lease is behind.
type twoViews struct {
	t             *testing.T
	etcd, memory  coordinationv1.Lease
	reads, writes int // of etcd
}

func (v *twoViews) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answer := v.etcd
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Get("resourceVersion") == "0":
		answer = v.memory
	case r.Method == http.MethodGet:
		v.reads++
	default:
		var written coordinationv1.Lease
		if err := json.NewDecoder(r.Body).Decode(&written); err != nil {
			v.t.Error(err)
		}
		if written.ResourceVersion != v.etcd.ResourceVersion {
			w.WriteHeader(http.StatusConflict)
			json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonConflict,
				Code: http.StatusConflict})
			return
		}
		v.writes++
		v.write(*written.Spec.HolderIdentity)
		answer = v.etcd
	}
	json.NewEncoder(w).Encode(answer)
}

// write makes the next version.
func (v *twoViews) write(holder string) {
	version, _ := strconv.Atoi(v.etcd.ResourceVersion)
	v.etcd = coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: Own, Namespace: Namespace,
		ResourceVersion: strconv.Itoa(version + 1)}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
}

// A glance is never older than what is known, asks etcd nothing, and what it says can be written if it is not old.
func TestAGlanceAtTheOwnLease(t *testing.T) {
	v := &twoViews{t: t, etcd: coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "8"}}}
	v.write("other")
	v.memory = v.etcd // version 9: with ten the order of digits and of numbers differ
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	l := newOwnLease(coordination.NewForConfigOrDie(&rest.Config{Host: server.URL,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"}}), "me")
	holder := func(want string) {
		t.Helper()
		r, _, err := l.Glance(t.Context())
		if err != nil || r.HolderIdentity != want {
			t.Fatalf("a glance says %+v, %v; want %q", r, err, want)
		}
	}
	holder("other")
	r, _, err := l.Glance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.HolderIdentity = "me"
	if err := l.Update(t.Context(), *r); err != nil || v.reads != 0 || v.writes != 1 {
		t.Fatalf("what was glanced at is written: %v, %d reads, %d writes", err, v.reads, v.writes)
	}
	holder("me") // the memory still has the other
	v.write("other")
	if err := l.Update(t.Context(), *r); err == nil {
		t.Fatal("an old Lease was written")
	}
	v.memory = v.etcd
	holder("other")
	if r, _, err = l.Get(t.Context()); err != nil || r.HolderIdentity != "other" || v.reads != 1 {
		t.Errorf("read: %+v, %v, %d reads", r, err, v.reads)
	}
	r.HolderIdentity = "me"
	if err := l.Update(t.Context(), *r); err != nil {
		t.Errorf("after a read: %v", err)
	}
}
