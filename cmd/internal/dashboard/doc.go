// Package dashboard implements the command `dashboard`: it shows the fleet, the catalog and what is not
// well, in a browser, with the rights of the user who started it.
//
// Pages are rendered by the server, and work without JavaScript. They show what the watches of the hub's
// own kinds hold in memory; what is in user clusters, and everything that is asked for by name, is read
// when a page shows it. A watch is in one of these states:
//
//	Connecting ──► Live ◄──► Lost        the API server does not answer: what was read before is shown
//	                 │  ▲
//	                 ▼  │
//	              Forbidden              the user may not read the kind: nothing of it is shown
//
// What can be done with an object is an action: a page plans it with the engine of the command line, in dry runs, and shows
// what would happen; sending the form of that page does it. Both are done as the viewer, and planned again when it is done, so
// that nothing is taken from the form but what the viewer has filled in, and the state that they have seen.
//
// A page that is open has a stream of server-sent events, which says when something that the page shows
// has changed; the page is then fetched again. One for which something is rendered says so, and is fetched again when its viewer wants that. On the page of a tree, that is each object of the tree, and what these come to own.
package dashboard
