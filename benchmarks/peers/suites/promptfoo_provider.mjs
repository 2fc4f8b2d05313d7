// promptfoo: a provider of one's own, as its guide shows, which runs the agent's loop with fetch.
// Its own provider of chat completions stops at the tool's result; it makes no second model call.

const address = `${process.env.BENCH_URL}/chat/completions`;
const tools = [
  {
    type: "function",
    function: {
      name: "echo",
      description: "Return the text.",
      parameters: {
        type: "object",
        properties: { text: { type: "string" } },
        required: ["text"],
        additionalProperties: false,
      },
    },
  },
];

async function complete(messages) {
  const answer = await fetch(address, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer no-key" },
    body: JSON.stringify({ model: "gpt-5-mini", messages, tools }),
  });
  if (!answer.ok) throw new Error(`the model answered with ${answer.status}`);
  return answer.json();
}

export default class Agent {
  id() {
    return "agent";
  }

  async callApi(prompt) {
    const messages = [
      { role: "system", content: "Be brief." },
      { role: "user", content: prompt },
    ];
    const used = { prompt: 0, completion: 0, total: 0 };
    for (;;) {
      const { choices, usage } = await complete(messages);
      used.prompt += usage.prompt_tokens;
      used.completion += usage.completion_tokens;
      used.total += usage.total_tokens;
      const { message } = choices[0];
      if (!message.tool_calls) return { output: message.content, tokenUsage: used };
      messages.push(message);
      for (const call of message.tool_calls) {
        const { text } = JSON.parse(call.function.arguments);
        messages.push({ role: "tool", tool_call_id: call.id, content: text });
      }
    }
  }
}
