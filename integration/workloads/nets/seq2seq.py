"""Translation by an encoder and a decoder of LSTMs with attention.

Sizes are those of Chainer's example (examples/seq2seq): three layers of 1,024 units in each, 40,000 words of each language beside an end and an
unknown one, sentences of fewer than 50 words, a tenth dropped between layers. Attention, which the example has not, is Luong et al.'s (2015): global,
by dot products of the decoder's outputs with the encoder's, without input feeding, so that it is computed for all words at once; then a linear
layer of context and output, and tanh.

- A minibatch's sentences are all as long as its longest; another minibatch, another length, of source and target. Blocks of words and all
  activations are larger or smaller with it. The lengths are drawn, the same in every run; `length` makes both one number in all minibatches.
- LSTMs are unrolled: word after word, and in a word layer after layer. A cell is two launches: products of input and last output with the weights
  (kept for backward, with the cell's state), then all that is computed from them.
- What uses parameters more than once adds to their gradients in place. That of an embedding is as large as its table, as in Chainer.
"""
import random

from blocks import Concatenation
from layers import Dropout, Layer, Linear, Loss, Tanh
from network import FLOAT, Activation, Network

UNITS, DEPTH, WORDS = 1024, 3, 40002
LONGEST = 49    # words, beside the end
SHORTEST = 5


class Embedding(Layer):
    """A vector for each word: an activation for each position."""

    def __init__(self, network):
        super().__init__(network)
        self.table = network.parameter(WORDS * UNITS)
        self.words, self.vectors = None, []

    def forward(self, words, length):
        self.words = words
        self.vectors = [self.network.put_out((UNITS, 1)) for _ in range(length)]
        self.recorder.kernel([self.table.weight, words], [vector.block for vector in self.vectors])
        return self.vectors

    def backward(self):
        (gradient,) = self.network.parameter_gradients(self.table)
        self.recorder.kernel([], [gradient])
        self.recorder.kernel([self.words, *[vector.gradient for vector in self.vectors], gradient], [gradient],
                             sum(vector.gradient.size for vector in self.vectors) / FLOAT)
        self.recorder.scratch(gradient.size)
        for vector in self.vectors:
            self.network.spend(vector)


class Lstm:
    """Parameters of one layer: weights of its input and of its last output, and both biases, each for three gates and the new state."""

    def __init__(self, network):
        self.of_input, self.of_output = (network.parameter(4 * UNITS ** 2) for _ in range(2))
        self.bias = network.parameter(8 * UNITS)


class Zeros(Layer):
    """Output and state of each layer before the first word. Their gradients are not computed."""

    def __init__(self, network):
        super().__init__(network)
        self.pairs = []

    def forward(self):
        self.pairs = [(self.network.put_out((UNITS, 1)), self.network.put_out((UNITS, 1))) for _ in range(DEPTH)]
        self.recorder.kernel([], [zeros.block for pair in self.pairs for zeros in pair])
        return self.pairs

    def backward(self):
        for pair in self.pairs:
            for zeros in pair:
                self.network.spend(zeros)


class Cell(Layer):
    """One position in one layer."""

    def __init__(self, network, lstm):
        super().__init__(network)
        self.lstm = lstm
        self.last = self.gates = self.state = None
        self.flops = 2 * network.batch * 4 * UNITS ** 2    # of the product with either weights

    def forward(self, x, last):
        """`last`: output and state of the position before."""
        network, recorder, lstm = self.network, self.recorder, self.lstm
        self.x, self.last = x, last
        self.gates = recorder.malloc(FLOAT * network.batch * 4 * UNITS)
        recorder.kernel([x.block, lstm.of_input.weight, last[0].block, lstm.of_output.weight], [self.gates], 2 * self.flops)
        self.state, self.y = network.put_out((UNITS, 1)), network.put_out((UNITS, 1))
        recorder.kernel([self.gates, lstm.bias.weight, last[1].block], [self.state.block, self.y.block], 80 * self.y.block.size / FLOAT)
        recorder.scratch(self.y.block.size)
        network.hold(x, self.state, *last)
        return self.y, self.state

    def _add_gradient(self, parameter, reads, flops):
        """The first use in backward makes the gradient, the others add to it."""
        if parameter.new_gradient is None:
            (gradient,) = self.network.parameter_gradients(parameter)
            self.recorder.kernel(reads, [gradient], flops)
            self.recorder.scratch(gradient.size)
        else:
            self.recorder.kernel([*reads, parameter.new_gradient], [parameter.new_gradient], flops)

    def backward(self):
        network, recorder, lstm = self.network, self.recorder, self.lstm
        gates, before = recorder.malloc(self.gates.size), recorder.malloc(self.state.block.size)
        given = [self.y, self.state] if self.state.gradient else [self.y]    # the last state of all goes nowhere
        recorder.kernel([self.gates, lstm.bias.weight, self.last[1].block, self.state.block, *[y.gradient for y in given]], [gates, before],
                        120 * before.size / FLOAT)
        recorder.free(self.gates)
        network.done(self.state)
        for y in given:
            network.spend(y)
        network.give(self.last[1], before)
        for read, parameter in (self.x, lstm.of_input), (self.last[0], lstm.of_output):
            gradient = recorder.malloc(read.block.size)
            recorder.kernel([gates, parameter.weight], [gradient], self.flops)
            network.give(read, gradient)
            self._add_gradient(parameter, [gates, read.block], self.flops)
        self._add_gradient(lstm.bias, [gates], gates.size / FLOAT)
        recorder.free(gates)
        network.done(self.x, *self.last)


class Attention(Layer):
    """For each of the decoder's outputs a sum of the encoder's, by how alike they are."""

    def __init__(self, network):
        super().__init__(network)
        self.encoded = self.weights = None
        self.words = self.flops = 0    # of the source; of one product

    def forward(self, decoded, encoded):
        network, recorder = self.network, self.recorder
        self.x, self.encoded = decoded, encoded
        positions, self.words = decoded.floats // UNITS, encoded.floats // UNITS
        self.flops = 2 * network.batch * positions * self.words * UNITS
        scores = network.put_out((positions * self.words, 1))
        recorder.kernel([decoded.block, encoded.block], [scores.block], self.flops)
        self.weights = network.put_out_filled(scores.shape, [scores.block], flops=24 * scores.block.size / FLOAT).block
        recorder.free(scores.block)
        self.y = network.put_out_filled(decoded.shape, [self.weights, encoded.block], flops=self.flops)
        network.hold(decoded, encoded)
        return self.y

    def backward(self):
        network, recorder, dy = self.network, self.recorder, self.y.gradient
        weights, scores = recorder.malloc(self.weights.size), recorder.malloc(self.weights.size)
        recorder.kernel([dy, self.encoded.block], [weights], self.flops)
        encoded = recorder.malloc(self.encoded.block.size)
        recorder.kernel([self.weights, dy], [encoded], self.flops)
        network.give(self.encoded, encoded)
        recorder.kernel([self.weights, weights], [scores], 4 * scores.size / FLOAT)
        recorder.free(weights)
        recorder.free(self.weights)
        network.spend(self.y)
        for read, other in (self.x, self.encoded), (self.encoded, self.x):
            gradient = recorder.malloc(read.block.size)
            recorder.kernel([scores, other.block], [gradient], self.flops)
            network.give(read, gradient)
        recorder.free(scores)
        network.done(self.x, self.encoded)


class Seq2seq(Network):
    def __init__(self, recorder, batch, length=None):
        super().__init__(recorder, batch)
        self._length, self._drawn = length, random.Random(1804)
        self._source, self._target = Embedding(self), Embedding(self)
        self._encoder, self._decoder = ([Lstm(self) for _ in range(DEPTH)] for _ in range(2))
        self._mixed, self._tanh = Linear(self, 2 * UNITS, UNITS), Tanh(self)
        self._chosen = Linear(self, UNITS, WORDS)

    def _lengths(self):
        """Of source and target, the target's with its end."""
        if self._length:
            return self._length, self._length + 1
        source = self._drawn.randint(SHORTEST, LONGEST)
        target = max(1, min(LONGEST, round(source * self._drawn.uniform(0.8, 1.2))))
        return source, target + 1

    def _words(self, length):
        """Copied in: a whole number each."""
        block = self.recorder.malloc(FLOAT * self.batch * length)
        self.recorder.kernel([], [block])
        return block

    def _unrolled(self, lstms, vectors, done, lasts):
        """Outputs of the last layer, and output and state of each layer at the end. `lasts`: these of before. Puts into `done` what was run."""
        outputs, lasts = [], list(lasts)
        for vector in vectors:
            x, before = vector, None
            for depth, lstm in enumerate(lstms):
                if before:
                    done.append(Dropout(self))
                    x = done[-1].forward(before)
                    if vector is vectors[-1] and lstms is self._decoder:
                        self.free_unread(before)    # no cell comes behind this one
                done.append(Cell(self, lstm))
                lasts[depth] = done[-1].forward(x, lasts[depth])
                before = lasts[depth][0]
            self.recorder.layer(before.block)
            outputs.append(before)
        return outputs, lasts

    def run_batch(self):
        source, target = self._lengths()
        words = [self._words(length) for length in (source, target, target)]    # the decoder's begin with an end
        self.labels = words[2]
        begin = Zeros(self)
        done = [self._source, begin]
        encoded, lasts = self._unrolled(self._encoder, self._source.forward(words[0], source), done, begin.forward())
        done.append(self._target)
        decoded, _ = self._unrolled(self._decoder, self._target.forward(words[1], target), done, lasts)
        wholes = []
        for parts in encoded, decoded:
            done.append(Concatenation(self))
            wholes.append(done[-1].forward(parts))
        self.free_unread(decoded[-1])
        attention, together, loss = Attention(self), Concatenation(self), Loss(self)
        context = attention.forward(wholes[1], wholes[0])
        both = together.forward([context, wholes[1]])
        self.free_unread(context)
        mixed = self._mixed.forward(both)
        sharpened = self._tanh.forward(mixed)
        self.free_unread(mixed)
        scores = self._chosen.forward(sharpened)
        loss.forward(scores)
        self.backward_through([*done, attention, together, self._mixed, self._tanh, self._chosen, loss])
        for block in words:
            self.recorder.free(block)
