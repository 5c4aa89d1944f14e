"""Detection in two stages: a network over whole images, and one over a number of boxes that differs from image to image."""
import torch
import torch.nn.functional as F
from torch import nn

from training import arguments, train

a = arguments(batch=8, width=64, size=128, boxes=64, classes=81)
CROP, ANCHORS = 7, 9


def stage(inputs, outputs):
    layers = [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
    layers += [nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        w = a.width
        self.features = nn.Sequential(stage(3, w), stage(w, 2 * w), stage(2 * w, 4 * w))
        self.proposals = nn.Conv2d(4 * w, ANCHORS * 5, 1)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(4 * w * CROP**2, 512), nn.ReLU(), nn.Linear(512, a.classes))

    def forward(self, images, boxes):
        features = self.features(images)
        crops = [features[i, :, y : y + CROP, x : x + CROP] for i, image in enumerate(boxes) for x, y in image.tolist()]
        return self.proposals(features).permute(0, 2, 3, 1).reshape(len(images), -1, 5), self.head(torch.stack(crops))


def loss_of(model, images):
    loss, labels, counts = 0, [], torch.randint(a.boxes // 8, a.boxes, (len(images),)).tolist()
    proposals, classes = model(images, [torch.randint(0, a.size // 8 - CROP + 1, (n, 2)) for n in counts])
    for found, n in zip(proposals, counts):
        chosen = torch.randint(0, len(found), (n,)).cuda()
        loss = loss + F.smooth_l1_loss(found[chosen][:, :4], torch.randn(n, 4).cuda())
        loss = loss + F.binary_cross_entropy_with_logits(found[:, 4], torch.rand(len(found)).cuda())
        labels.append(torch.randint(0, a.classes, (n,)).cuda())
    return loss + F.cross_entropy(classes, torch.cat(labels))


train(Detector().cuda(), lambda rows: [torch.randn(rows, 3, a.size, a.size)], loss_of, a)
