// A client of a running server, checked by the types that are made from its description. Its argument is the address.
import createClient from "openapi-fetch";
import type { components, paths } from "./recollect.js";

const client = createClient<paths>({ baseUrl: process.argv[2] });
const path = { namespace: "ana" };

const stored = await client.POST("/v1/{namespace}/remember", {
  params: { path },
  body: { content: "Ana moved to Lisbon in May.", user: "ana", tags: ["home"], importance: 0.5 },
});
if (stored.error) throw new Error(stored.error.detail);
const record: components["schemas"]["Record"] | null = stored.data.record;
if (record === null) throw new Error("nothing was stored");

const found = await client.POST("/v1/{namespace}/recall", {
  params: { path },
  body: { question: "Where does Ana live?", k: 3, user: "ana" },
});
if (found.error) throw new Error(found.error.detail);
const first = found.data.hits[0];

const changed = await client.PATCH("/v1/{namespace}/records/{id}", {
  params: { path: { ...path, id: record.id } },
  body: { content: "Ana moved to Porto in June.", importance: null, expect: record.hash },
});
if (changed.error) throw new Error(changed.error.detail);

const refused = await client.PATCH("/v1/{namespace}/records/{id}", {
  params: { path: { ...path, id: record.id } },
  body: { content: "Ana moved away.", expect: record.hash },
});

const context = await client.GET("/v1/{namespace}/context", {
  params: { path, query: { question: "Where does Ana live?", max_tokens: 200 } },
});
if (context.error) throw new Error(context.error.detail);

console.log(
  JSON.stringify({
    status: stored.data.status,
    content: first.record.content,
    score: first.score,
    words: first.why.words?.map((word) => word.word),
    changed: changed.data.content,
    refused: refused.error?.code,
    context: context.data.text,
  }),
);
