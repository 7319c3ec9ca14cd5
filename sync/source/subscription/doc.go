// Package subscription keeps what a source, such as a git repository, was last asked, and says when it is
// asked again.
//
// A Subscription is one owner's to one source. Each reconciliation of the owner says what it wants to know
// (Set), and gets the answer once, or a State that says why there is none. Asking is a job that runs outside of
// the workers, in the lane of its server: a server that does not respond holds up no other. Its end enqueues
// the owner, as does that it takes long; State.Due says when time is a reason for another Set. So a
// reconciliation knows neither of jobs nor of back-offs.
//
//	            Set                     an answer
//	Unasked ──────────────► Asking ─────────────────► Answered
//	                        ▲ ▲  │                      │  │
//	                        │ │  │ an error             │  │ Fail
//	                        │ │  └──────────► Failed ◄──│──┘
//	                        │ └─────────────────┘       │
//	                        │  Set: its back-off is     │
//	                        │  over, or another         │
//	                        │  question                 │
//	                        └───────────────────────────┘
//	                          Set: Question.Every is over, the answer is lacking, or another question
//
// What the last attempt has ended with is kept while the question is asked again. An attempt that is under way
// when nothing is due any more is dropped, as by Rest. One for another question ends first, and its answer is
// discarded.
package subscription
