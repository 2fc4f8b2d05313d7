// A bank's agent, written with Vercel's AI SDK: `node agent.mjs teller|typed|stream`.
import { readFileSync } from "node:fs";
import { openai } from "@ai-sdk/openai";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const { prompt, messages } = JSON.parse(readFileSync(0, "utf8"));
const account = z.object({ account: z.string() });
const tools = {
  get_balance: tool({
    description: "The balance of an account.",
    inputSchema: account,
    execute: ({ account }) => `$1,500.00 on ${account}`,
  }),
  close_account: tool({
    description: "Close an account.",
    inputSchema: account,
    execute: ({ account }) => {
      throw new Error(`${account} is not empty`);
    },
  }),
};
const options = {
  model: openai("gpt-5-mini"),
  system: "Be brief.",
  messages: [...messages, { role: "user", content: prompt }],
  stopWhen: stepCountIs(50),
  maxRetries: 0,
  tools,
};
const run = {
  teller: async () => (await generateText(options)).text,
  typed: async () => {
    const schema = z.object({ account: z.string(), dollars: z.number() });
    const output = Output.object({ schema });
    return (await generateText({ ...options, tools: {}, output })).text;
  },
  stream: async () => await streamText(options).text,
};
console.log(await run[process.argv[2]]());
