package member

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"

	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/record"
)

// NotStarted begins the name, in a joiner's configuration, of a member that was added and has not started, and inList
// that of any other.
const (
	NotStarted = "not-started-"
	inList     = "member-"
)

// IsConfigured reports whether a member's name is one of a joiner's configuration. Until it has applied its first entry
// etcd answers with that, and calls all that it lists voters.
func IsConfigured(name string, id record.MemberID) bool {
	return name == NotStarted+id.String() || name == inList+id.String()
}

// goFirst are the peer URLs of the members that were added, have not started, and go before this one: those with a
// smaller id.
func goFirst(list []*membership.Member, own record.MemberID) (urls []string) {
	for _, m := range list {
		if m.Name == "" && len(m.PeerURLs) > 0 && record.MemberID(m.ID) < own {
			urls = append(urls, m.PeerURLs[0])
		}
	}
	return urls
}

// awaitTurn lets members that join at the same moment start one after the other. A member that starts asks all others
// for the list and their versions, with its own port open and unanswered: two that do so at once wait for each other,
// 17 s of time-outs (10 s in GetClusterFromRemotePeers, 7 s in getVersion). The one that waits has not opened its port,
// so the other is refused at once and goes on.
func awaitTurn(ctx context.Context, first []string, rt http.RoundTripper, log *slog.Logger) error {
	client := &http.Client{Transport: rt, Timeout: turnTimeout}
	for end := time.Now().Add(turnPatience); len(first) > 0; {
		switch resp, err := client.Get(first[0] + "/version"); {
		case err == nil:
			resp.Body.Close()
			first = first[1:]
			continue
		case time.Now().After(end):
			log.Info("not waiting any longer for members that go first", "urls", strings.Join(first, " "))
			return nil
		}
		if err := backoff.Sleep(ctx, turnPeriod); err != nil {
			return err
		}
	}
	return nil
}
