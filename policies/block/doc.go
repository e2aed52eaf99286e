// Package block turns a prompt into the chained hashes that routing compares:
// 64-byte prefix blocks of the rendered prompt, and engine blocks of tokens.
//
// A chained hash stands for its block and everything before it, so two prompts
// share a hash exactly when they share all bytes (or tokens) up to its end. Only
// whole blocks are hashed: what is left over at the end of a prompt has no hash.
//
// The package does not render chat messages or tokenize; it only frames what is
// given so that no two lists of messages frame alike. Its token hashes are the
// router's own. They are not the numbers an engine puts in its KV events, which
// depend on the engine's version and hash setting and belong to whoever reads
// those events.
package block
