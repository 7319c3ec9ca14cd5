package git

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

// attempt is one way to ask for a commit.
type attempt struct {
	// want is the object to ask for: the commit, a tag of it, or the tip of a
	// branch that should hold it.
	want plumbing.Hash
	// depth is how many commits to fetch from there; 0 means all.
	depth int
	// guess says that the server may refuse, or that the commit may not be in the answer; then the
	// next attempt follows.
	guess bool
}

// historyDepth is how far a branch is searched for a commit before all of it is fetched.
const historyDepth = 100

// plan lists the ways to get a revision, cheapest first. Servers serve the commits that they
// advertise, and some serve any commit; otherwise the commit is looked for in the history of the
// branch that the revision names.
func plan(adv *packp.AdvRefs, rev Revision, stateless bool) []attempt {
	commit := plumbing.NewHash(rev.Commit)
	if adv.Head != nil && *adv.Head == commit {
		return []attempt{{want: commit, depth: 1}}
	}
	for _, hash := range adv.References {
		if hash == commit {
			return []attempt{{want: commit, depth: 1}}
		}
	}
	for name, hash := range adv.Peeled {
		if hash == commit {
			return []attempt{{want: adv.References[name], depth: 1}}
		}
	}
	var attempts []attempt
	if stateless || adv.Capabilities.Supports(capability.AllowReachableSHA1InWant) {
		attempts = append(attempts, attempt{want: commit, depth: 1, guess: true})
	}
	if tip, ok := tipOf(adv, rev.Ref); ok {
		attempts = append(attempts,
			attempt{want: tip, depth: historyDepth, guess: true},
			attempt{want: tip, guess: true})
	}
	return attempts
}

// tipOf returns the commit that the reference of a revision points to now.
func tipOf(adv *packp.AdvRefs, ref string) (plumbing.Hash, bool) {
	for _, name := range []plumbing.ReferenceName{plumbing.NewBranchReferenceName(ref), plumbing.ReferenceName(ref)} {
		if hash, ok := adv.References[name.String()]; ok {
			return hash, true
		}
	}
	return plumbing.ZeroHash, false
}

// unobtainable is the error if every attempt failed.
func unobtainable(rev Revision) error {
	if rev.Ref == "" {
		return fmt.Errorf("%w: the server does not serve commit %s by its hash; set the branch that contains it",
			ErrRefNotFound, rev.Commit)
	}
	return fmt.Errorf("%w: commit %s is not, or no longer, in the history of %q", ErrRefNotFound, rev.Commit, rev.Ref)
}

// refused reports whether the server declined to serve what was asked for, in the words of git,
// JGit and libgit2. There is no other way to know.
func refused(err error) bool {
	text := err.Error()
	for _, phrase := range []string{"not our ref", "unadvertised object", "is not valid", "not valid"} {
		if strings.Contains(text, phrase) {
			return true
		}
	}
	return false
}

// request asks for what the attempt wants and nothing that is here already: unless it is zero, have
// is a commit whose objects are complete.
func request(caps *capability.List, a attempt, have plumbing.Hash, l Limits) (*packp.UploadPackRequest, error) {
	req := packp.NewUploadPackRequestFromCapabilities(caps)
	req.Wants = []plumbing.Hash{a.want}
	if err := setCapabilities(req, caps, capability.NoProgress); err != nil {
		return nil, err
	}
	if caps.Supports(capability.Filter) {
		if err := setCapabilities(req, caps, capability.Filter); err != nil {
			return nil, err
		}
		// Leaves out files of at least this size.
		req.Filter = packp.FilterBlobLimit(uint64(l.FileBytes)+1, packp.BlobLimitPrefixNone)
	}
	if a.depth == 0 || !caps.Supports(capability.Shallow) {
		return req, nil
	}
	if err := setCapabilities(req, caps, capability.Shallow); err != nil {
		return nil, err
	}
	req.Depth = packp.DepthCommits(a.depth)
	if !have.IsZero() && a.depth == 1 {
		// The server must know that we have none of its ancestors.
		req.Haves = []plumbing.Hash{have}
		req.Shallows = []plumbing.Hash{have}
		// Without thin packs the server sends all files for every fetch of depth one. Every server
		// supports them, although go-git hides that.
		return req, req.Capabilities.Set(capability.ThinPack)
	}
	return req, nil
}

func setCapabilities(req *packp.UploadPackRequest, caps *capability.List, wanted capability.Capability) error {
	if !caps.Supports(wanted) {
		return nil
	}
	if err := req.Capabilities.Set(wanted); err != nil {
		return fmt.Errorf("ask for capability %s: %w", wanted, err)
	}
	return nil
}

// transfer receives the answer to one attempt and adds it to the generation.
func (m *mirror) transfer(ctx context.Context, g *generation, s session, adv *packp.AdvRefs, a attempt) error {
	req, err := request(adv.Capabilities, a, g.newest, m.intake.limits)
	if err != nil {
		return err
	}
	if req.Filter != "" {
		if err := g.markFiltered(); err != nil {
			return err
		}
	}
	res, err := s.UploadPack(ctx, req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Close() }()
	return contextFirst(ctx, m.intake.ingest(ctx, g, demultiplexed(req, res)))
}

// demultiplexed returns the pack only. An error that the server sends beside it becomes an error of
// the reader.
func demultiplexed(req *packp.UploadPackRequest, res io.Reader) io.Reader {
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, res)
	case req.Capabilities.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, res)
	default:
		return res
	}
}
