// Package seed derives named random streams from one run seed.
//
// A stream is named by a role and the ids of the entity that draws from it, so
// adding an entity, or drawing more often in one place, shifts nobody else's
// draws. The package holds no state and refuses to be a generator itself: it
// only says where a math/rand/v2 PCG starts.
package seed
