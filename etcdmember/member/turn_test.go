package member

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
)

// startsAt are peers that answer from a moment on.
type startsAt map[string]time.Time

func (s startsAt) RoundTrip(r *http.Request) (*http.Response, error) {
	at, ok := s[strings.TrimSuffix(r.URL.String(), "/version")]
	if !ok || time.Now().Before(at) {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

func TestMembersThatJoinTogetherStartOneAfterTheOther(t *testing.T) {
	for name, c := range map[string]struct {
		first []string
		peers map[string]time.Duration
		took  time.Duration
	}{
		"nobody goes first":     {},
		"the other has started": {[]string{"https://b"}, map[string]time.Duration{"https://b": 0}, 0},
		"the other takes its time": {[]string{"https://b"},
			map[string]time.Duration{"https://b": 290 * time.Millisecond}, 300 * time.Millisecond},
		"two others start one after the other": {[]string{"https://b", "https://c"},
			map[string]time.Duration{"https://b": 100 * time.Millisecond, "https://c": 200 * time.Millisecond},
			200 * time.Millisecond},
		"the other never comes": {[]string{"https://b"}, nil, turnPatience + turnPeriod},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, peers := time.Now(), startsAt{}
				for url, after := range c.peers {
					peers[url] = begin.Add(after)
				}
				if err := awaitTurn(t.Context(), c.first, peers, slog.New(slog.DiscardHandler)); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begin); took != c.took {
					t.Errorf("it waited %s, want %s", took, c.took)
				}
			})
		})
	}
}

func TestAWaitForATurnEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := awaitTurn(ctx, []string{"https://b"}, startsAt{}, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("it went on")
	}
}

func TestOnlyUnstartedMembersWithASmallerIDGoFirst(t *testing.T) {
	member := func(id types.ID, name, url string) *membership.Member {
		m := &membership.Member{ID: id, RaftAttributes: membership.RaftAttributes{PeerURLs: []string{url}}}
		m.Name = name
		return m
	}
	list := []*membership.Member{
		member(1, "started", "https://a"), member(2, "", "https://b"), member(3, "", "https://me"),
		member(4, "", "https://d"),
		{ID: 0}, // without a URL
	}
	if got := goFirst(list, 3); !slices.Equal(got, []string{"https://b"}) {
		t.Errorf("%v go first", got)
	}
	if got := goFirst(list, 2); len(got) != 0 {
		t.Errorf("%v go before the first", got)
	}
}
