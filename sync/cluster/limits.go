package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// limits are what a user cluster may send, and what is kept of it, in bytes. A cluster that sends more is
// lost, for a while, rather than every cluster with it. Weights are estimates of the memory that an answer
// takes once it is decoded, since a few bytes of JSON or protobuf can become many times as much.
type limits struct {
	// body bounds a response, unpacked, that is no watch, and bodyWeight its weight.
	body, bodyWeight int64
	// object bounds a response that has one object, and objectWeight its weight.
	object, objectWeight int64
	// errorBody bounds a response that is an error.
	errorBody int64
	// frame bounds one event of a watch in JSON, and frameWeight its weight.
	frame, frameWeight int64
	// protobuf bounds an event, or a response, in protobuf: it is used for the metadata of one object
	// at a time, and etcd takes objects of 1.5 MiB.
	protobuf int64
	// discovery bounds a document of discovery, and discoveryWeight the weight of all of them together.
	discovery, discoveryWeight int64
	// groupsWeight bounds the weight of a list of API groups that leaves their kinds to requests of
	// their own, one for each version.
	groupsWeight int64
	// kept bounds the weight of all objects that are watched, without what is not kept of them.
	kept int64
	// held bounds the weight of what clients of a cluster that is not engaged may hold of its answers.
	held int64
}

// defaultLimits returns limits that lists of 40,000 objects, 10,000 kinds, 4,000 API groups and the
// metadata of 200,000 watched objects fit. An API server takes requests of 3 MiB, and may write one byte of
// a string as six; 3 MiB of nothing but empty objects fit an event, too.
func defaultLimits() limits {
	return limits{
		body: 64 << 20, bodyWeight: 320 << 20, object: 64 << 20, objectWeight: 320 << 20, errorBody: 4 << 20,
		frame: 24 << 20, frameWeight: 192 << 20, protobuf: 2 << 20,
		discovery: 16 << 20, discoveryWeight: 96 << 20, groupsWeight: 8 << 20,
		kept: 128 << 20,
	}
}

const (
	// maxHeader bounds the header of a response.
	maxHeader = 1 << 20
	// bodyTimeout bounds the time that a response takes that is no watch. The API server itself gives up
	// after a minute.
	bodyTimeout = 2 * time.Minute
	// weightPerSecond bounds how fast weight is taken in, after the first bodyWeight of it, so that many
	// responses at a time do not take the memory that one may.
	weightPerSecond = 128 << 20

	// maxUnderWay bounds the weight of the answers of a cluster that are received at once, whether or not
	// they ever end. Beyond that, they are received one by one.
	maxUnderWay = 64 << 20
	// maxAllUnderWay bounds the weight of all answers of all clusters that are received at once: the
	// cluster that sends most of them is lost. What one cluster may have under way fits.
	maxAllUnderWay = 448 << 20
	// maxAllHeld bounds the weight of what clients hold of all clusters that are not engaged.
	maxAllHeld = 512 << 20
	// maxStreamBuffer and maxConnectionBuffer bound what is received over HTTP/2 before it is read. A
	// connection has room for all of its streams, so that those that wait do not hold up the others.
	maxStreamBuffer     = 256 << 10
	maxConnectionBuffer = 256 * maxStreamBuffer
	// maxRetryAfter bounds the seconds after which the API server wants to be asked again.
	maxRetryAfter = 5

	// maxInstallations is how many ApplicationInstallations a cluster may have.
	maxInstallations = 10_000
)

// LimitError means that a cluster has sent more than is accepted of it.
type LimitError struct {
	// What was sent: a request and its answer, or objects of a kind.
	What string
	// Most is how much of it is accepted, with its unit.
	Most string
}

// Error says what exceeded which limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%s exceeds the limit of %s", e.What, e.Most)
}

// tooMuch returns the error of an answer that exceeds a limit.
func tooMuch(req *http.Request, what string, most int64) error {
	return &LimitError{What: what + " " + named(req), Most: mebibytes(most)}
}

// named returns the method and path of a request, without its query: that differs from request to
// request.
func named(req *http.Request) string {
	method := req.Method
	if isWatch(req) {
		method = "WATCH"
	}
	return method + " " + req.URL.Path
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// isDiscovery reports whether a path, without that of the server, is one of discovery: /api, /api/v1,
// /apis, /apis/GROUP, /apis/GROUP/VERSION.
func isDiscovery(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	return parts[0] == "api" && len(parts) <= 2 || parts[0] == "apis" && len(parts) <= 3
}

// isOne reports whether a request, whose path without that of the server is given, is about one object.
func isOne(req *http.Request, path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	return len(parts) > 1 || req.Method != http.MethodGet
}
