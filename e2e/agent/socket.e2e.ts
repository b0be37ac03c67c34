import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { AgentPods, runDirOf } from '../../bed/faults/agent-pods.js';
import { HoldfastProcess } from '../../bed/holdfast/process.js';
import { describeStory, itOnWire } from '../../bed/story/describe.js';
import { untilValue } from '../../bed/processes/wait.js';

const NODE = 'node-1';
const CROWD = 500;

describeStory('A second agent on a node', (story) => {
  itOnWire('reports the first one, exits, and does not disturb it', async ({ bed, wire, agents }) => {
    const pods = new AgentPods(story(), wire);
    await story().addresses.createNetwork('blue', ['10.62.0.0/24']);
    const second = new HoldfastProcess(bed, 'agent', bed.webhook.ports, { name: NODE, runDir: runDirOf(bed, NODE) });
    const failure = await second.start().catch((error: unknown) => error);
    expect(String(failure)).to.match(/agent\.sock: another agent listens there, and a node can have only one/);
    await untilValue(
      'the second agent to end',
      () => second.running,
      (isRunning) => !isRunning,
    );
    await pods.create('pod1', NODE);
    await pods.waitRunning('pod1');
    await agents.on(NODE).kill();
    await agents.on(NODE).start(); // the socket file of a killed agent does not block the start
    await pods.create('pod2', NODE);
    await pods.waitRunning('pod2');
  });
});

describeStory('An invalid request on the socket of an agent', (story) => {
  itOnWire('is answered with an error, and does not delay other requests', async ({ bed, wire, agents }) => {
    const pods = new AgentPods(story(), wire);
    await story().addresses.createNetwork('blue', ['10.62.1.0/24']);
    const path = join(runDirOf(bed, NODE), 'agent.sock');
    const idle = await Promise.all(Array.from({ length: CROWD }, () => connected(path)));
    try {
      for (const half of idle.slice(0, CROWD / 2)) half.write('{"env":{"CNI_COMMAND":"ADD"');
      await pods.create('pod1', NODE);
      await pods.waitRunning('pod1');
      expect(await said(path, randomBytes(4096))).to.include({ code: 6 });
      expect(await said(path, Buffer.alloc(4 << 20, 'x'))).to.include({ code: 6 });
      expect(await said(path, Buffer.from('{"env":{"CNI_COMMAND":"ADD"}'))).to.include({ code: 6 });
      expect(await said(path, Buffer.from('{"env":{"CNI_COMMAND":"ADD"},"config":"{}"}'))).to.include({ code: 4 });
      await hangUp(path, '{"env":');
      const answers = await Promise.all(idle.map((socket) => answerOn(socket)));
      for (const answer of answers) expect(answer).to.include({ code: 5 });
      expect(await agents.on(NODE).isReady()).to.equal(true);
      await pods.delete('pod1');
      await pods.waitGone('pod1');
      await story().addresses.waitHeld([]);
    } finally {
      for (const socket of idle) socket.destroy();
    }
  });
});

async function connected(path: string): Promise<Socket> {
  const socket = createConnection(path);
  socket.on('error', () => undefined); // the agent may close the connection before the end of the write
  await once(socket, 'connect');
  return socket;
}

/** The error in the agent's answer. */
async function said(path: string, text: Buffer): Promise<unknown> {
  const socket = await connected(path);
  const answer = answerOn(socket);
  socket.end(text);
  return answer;
}

async function answerOn(socket: Socket): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  const { output } = JSON.parse(Buffer.concat(chunks).toString()) as { output: string };
  return JSON.parse(output);
}

async function hangUp(path: string, text: string): Promise<void> {
  const socket = await connected(path);
  await new Promise((resolve) => socket.write(text, resolve));
  socket.destroy();
}
