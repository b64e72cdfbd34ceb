package member

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/local"
	"github.com/quorate/quorate/internal/record"
)

// ReadStatus asks the child how its member is. An error means that no child answers.
func ReadStatus(ctx context.Context, socket string) (table.MemberStatus, error) {
	return readStatus(ctx, socket, "/status", 0)
}

// ReadStreams is ReadStatus with PeerProgress.StreamsActive filled.
func ReadStreams(ctx context.Context, socket string) (table.MemberStatus, error) {
	return readStatus(ctx, socket, "/status?streams", 0)
}

func readStatus(ctx context.Context, socket, path string, waits time.Duration) (s table.MemberStatus, err error) {
	ctx, cancel := context.WithTimeout(ctx, waits+statusTimeout)
	defer cancel()
	if err := local.Call(ctx, socket, http.MethodGet, path, &s); err != nil {
		return table.MemberStatus{}, fmt.Errorf("ask the member's status: %w", err)
	}
	return s, nil
}

// Alive asks the child whether its member could do without another start, for as long as ctx lets it. A slow disk is no
// reason for one.
func Alive(ctx context.Context, socket string) error {
	var stuck *local.Refusal
	err := local.Call(ctx, socket, http.MethodGet, "/alive", nil)
	if errors.As(err, &stuck) {
		return fmt.Errorf("the member is stuck: %w", err)
	}
	if err != nil {
		return fmt.Errorf("ask the member whether it is alive: %w", err)
	}
	return nil
}

// HandOver asks the child, before a stop, to move the leadership to the best other voter, if it has it. It takes no
// longer than HandOverTimeout: what fails here only makes the others elect. It returns nil when the member is not the
// leader (any more), or is alone.
func HandOver(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, HandOverTimeout)
	defer cancel()
	return postHandOver(ctx, socket, "/hand-over")
}

// HandOverTo moves the leadership to one member and no other, while this one goes on.
func HandOverTo(ctx context.Context, socket string, to record.MemberID) error {
	return postHandOver(ctx, socket, "/hand-over?to="+to.String())
}

// postHandOver waits for as long as ctx lets it: a transfer takes up to an election time-out.
func postHandOver(ctx context.Context, socket, path string) error {
	if err := local.Call(ctx, socket, http.MethodPost, path, nil); err != nil {
		return fmt.Errorf("hand over leadership: %w", err)
	}
	return nil
}

// Defragment has the child give its database's free pages back, for as long as ctx lets it. Only a learner does.
func Defragment(ctx context.Context, socket string) error {
	if err := local.Call(ctx, socket, http.MethodPost, "/defragment", nil); err != nil {
		return fmt.Errorf("defragment the member: %w", err)
	}
	return nil
}
